// Reads cases ({principal, action, resource, context, identity, policy}) as JSON on stdin, writes each one's verdict by
// @cloud-copilot/iam-simulate, an evaluator by other people, to stdout.
import { readFileSync } from 'node:fs'
import { anonymousPrincipal, runSimulation } from '@cloud-copilot/iam-simulate'

const allowAll = [{ orgIdentifier: 'r-root', policies: [{ name: 'all', policy: { Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action: '*', Resource: '*' }] } }] }]
const answers = []
for (const one of JSON.parse(readFileSync(0, 'utf8'))) {
  const isAnonymous = one.principal === 'anonymous'
  const simulation = {
    request: {
      principal: isAnonymous ? anonymousPrincipal : one.principal,
      action: one.action,
      resource: { resource: one.resource, accountId: one.account },
      contextVariables: one.context
    },
    identityPolicies: one.identity.map((policy, index) => ({ name: `p${index}`, policy })),
    serviceControlPolicies: isAnonymous || one.principal.includes('amazonaws.com') ? [] : allowAll,
    resourceControlPolicies: [],
    resourcePolicy: one.policy ?? undefined
  }
  const answer = await runSimulation(simulation, { simulationMode: 'Strict' })
  if (answer.resultType !== 'error') answers.push(answer.overallResult)
  else if (answer.errors.message === 'no.resource.types') answers.push('ImplicitlyDenied') // the action acts on no such resource
  else answers.push(`error: ${JSON.stringify(answer.errors)}`)
}
process.stdout.write(JSON.stringify(answers))
