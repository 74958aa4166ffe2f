/** The document of the protocol has the schemas that both sides check. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { agentEvents, gatewayFrames, serviceFrames } from '#kernel/wire/agent-protocol.ts'

test('the schemas of the document are those that are checked', () => {
  const document = readFileSync(new URL('../../docs/agent-protocol.md', import.meta.url), 'utf8')
  const found = JSON.parse(/```json\n([\s\S]*?)```/.exec(document)?.[1] ?? '{}') as unknown
  const wanted = { gateway: gatewayFrames, service: serviceFrames, events: agentEvents }
  assert.deepEqual(found, JSON.parse(JSON.stringify(wanted)))
  for (const name of [
    ...Object.keys(gatewayFrames),
    ...Object.keys(serviceFrames),
    ...Object.keys(agentEvents),
  ])
    assert.ok(document.includes(`\`${name}`), `the text does not explain ${name}`)
})
