"""Checks of declarations: the rules of single values, of the fields of an object, and of objects together."""
