"""Java classes by reflection: load them, call their static methods, make their objects.

`jvm.org.apache.iceberg…` does not see classes that came with `spark.jars`. So classes are loaded by the class loader of an
object that came with them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember

Java = Any  # an object that lives in the JVM

ICEBERG = "org.apache.iceberg."
GUAVA = "relocated.com.google.common.collect."
_PRIMITIVES = {"int": "Integer", "long": "Long", "boolean": "Boolean"}


class LookedUpOnce(JavaClass):  # type: ignore[misc] # py4j has no types
    """A class each of whose static methods is looked up once; py4j asks the JVM before each call whether there is one."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            setattr(self, name, found)
        return found


class JavaClasses:
    """The classes that one class loader knows, each loaded once. Safe to share between threads.

    A class is named as `load` names it, also as the declared class of an argument.
    """

    def __init__(self, gateway: Java, loader: Java) -> None:
        self.gateway, self.loader = gateway, loader
        self._named: dict[str, Java] = {}
        self._loaded: dict[str, Java] = {}
        self._methods: dict[tuple[str, str, int], Java] = {}
        self._functions: dict[tuple[str, ...], Java] = {}
        self._constructors: dict[tuple[str, ...], Java] = {}

    def static(self, name: str, method: str, *arguments: tuple[str, Any]) -> Java:
        """Call a static method; each argument comes with its declared class.

        Methods are kept by name and number of arguments: one of two with the same number is called only.
        """
        key = (name, method, len(arguments))
        if key not in self._methods:
            types = self.class_array([kind for kind, _ in arguments])
            found = self.load(name).getDeclaredMethod(method, types)
            found.setAccessible(True)
            self._methods[key] = found
        return self._methods[key].invoke(None, self.object_array([value for _, value in arguments]))

    def new(self, name: str, *arguments: tuple[str, Any]) -> Java:
        """Make an object; each argument comes with its declared class."""
        key = (name, *(kind for kind, _ in arguments))
        if key not in self._constructors:
            self._constructors[key] = self._constructor(name, key[1:])
        constructor = self._constructors[key]
        return constructor.newInstance(self.object_array([value for _, value in arguments]))

    def function(self, name: str, method: str, *kinds: str, then: Sequence[Any] = (), on: Java = None) -> Java:
        """Return a method as a function of one value, for `each`.

        That value is the object, or the first argument of a static method, of a constructor, which is called "new", or of a
        method of the object `on`. `kinds` are the declared classes of the arguments, and `then` those after the first.
        Functions are kept by name and `then`, those of an object are not.
        """
        key = (name, method, *map(str, then))
        if on is None and key in self._functions:
            return self._functions[key]
        handles = self.java("java.lang.invoke.MethodHandles")
        if method == "new":
            handle = handles.publicLookup().unreflectConstructor(self._constructor(name, kinds))
        else:
            found = self.load(name).getDeclaredMethod(method, self.class_array(kinds))
            found.setAccessible(True)
            handle = handles.publicLookup().unreflect(found)
        if on is not None:
            handle = handle.bindTo(on)
        if then:
            handle = handles.insertArguments(handle, 1, self.object_array(then))
        operator = self.load("java.util.function.UnaryOperator")
        made = self.java("java.lang.invoke.MethodHandleProxies").asInterfaceInstance(operator, handle)
        if on is None:
            self._functions[key] = made
        return made

    def each(self, members: Java, function: Java) -> Java:
        """Return what a function gives for each member of a Java collection, as a list in the JVM.

        A loop in Python takes three calls for each member: one for it, one for its answer, and one that forgets the answer.
        """
        made = self.java("java.util.ArrayList")(members)
        made.replaceAll(function)
        return made

    def all_of(self, collections: Java) -> Java:
        """Return the members of a Java collection of collections, or of what else can be iterated, as one list in the JVM."""
        flat = self.static(GUAVA + "Iterables", "concat", ("java.lang.Iterable", collections))
        return self.static(GUAVA + "Lists", "newArrayList", ("java.lang.Iterable", flat))

    def values(self, members: Java) -> list[Any]:
        """Return the texts, numbers, booleans and nulls of a Java list, in one call."""
        parsed: list[Any] = json.loads(_mapper(members._gateway_client).writeValueAsString(members))
        return parsed

    def _constructor(self, name: str, kinds: Iterable[str]) -> Java:
        found = self.load(name).getDeclaredConstructor(self.class_array(kinds))
        found.setAccessible(True)
        return found

    def set_of(self, items: Iterable[Java]) -> Java:
        """Return Java objects as a set that lives in the JVM."""
        return self.java("java.util.HashSet")(self.list_of(items))

    def list_of(self, items: Iterable[Java]) -> Java:
        """Return Java objects as a list that lives in the JVM."""
        made = self.java("java.util.ArrayList")()
        for item in items:
            made.add(item)
        return made

    def map_of(self, entries: Mapping[str, str]) -> Java:
        """Return texts as a map that lives in the JVM."""
        made = self.java("java.util.HashMap")()
        for key, value in entries.items():
            made.put(key, value)
        return made

    def load(self, name: str) -> Java:
        """Return a class as an object to reflect on: of `org.apache.iceberg`, of a full name, or `int`, `long`, `boolean`."""
        if name in _PRIMITIVES:
            return self.java(f"java.lang.{_PRIMITIVES[name]}").TYPE
        if name not in self._loaded:
            full_name = name if name.startswith(("java.", "org.", "scala.", "[")) else ICEBERG + name
            self._loaded[name] = self.java("java.lang.Class").forName(full_name, True, self.loader)
        return self._loaded[name]

    def java(self, name: str) -> Java:
        """Return a class of Java's own, ready to call.

        `jvm.java…` would be looked for in every jar, and in every package that PySpark imports.
        """
        if name not in self._named:
            self._named[name] = LookedUpOnce(name, self.gateway._gateway_client)
        return self._named[name]

    def class_array(self, names: Iterable[str]) -> Java:
        """Return classes as a Java array."""
        return self.array_of(self.java("java.lang.Class"), map(self.load, names))

    def object_array(self, items: Iterable[Any]) -> Java:
        """Return values as a Java array of objects."""
        return self.array_of(self.java("java.lang.Object"), items)

    def array_of(self, kind: Java, items: Iterable[Any]) -> Java:
        """Return values as a Java array of this class."""
        values = list(items)
        array = self.gateway.new_array(kind, len(values))
        for i, value in enumerate(values):
            array[i] = value
        return array


def entries(java_map: Java) -> dict[str, str]:
    """Return a Java map of texts, such as a snapshot's summary, in one call.

    Iterating takes two calls a key, and an exception at the end.
    """
    parsed: dict[str, str] = json.loads(_mapper(java_map._gateway_client).writeValueAsString(java_map))
    return parsed


def texts(collection: Java) -> list[str]:
    """Return a Java collection of texts in one call."""
    parsed: list[str] = json.loads(_mapper(collection._gateway_client).writeValueAsString(collection))
    return parsed


def items(collection: Java) -> tuple[Java, ...]:
    """Return the members of a Java collection, without the exception that ends an iteration and is costly to make.

    A list answers in one call for each; an array is asked for its length before each.
    """
    members = JavaClass("java.util.ArrayList", collection._gateway_client)(collection)
    return tuple(members.get(i) for i in range(members.size()))


@lru_cache(maxsize=1)
def _mapper(client: Any) -> Java:
    return JavaClass("com.fasterxml.jackson.databind.ObjectMapper", client)()
