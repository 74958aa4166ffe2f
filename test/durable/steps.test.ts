/**
 * The steps of each kind and version, as `task-steps.json` lists them. An instance of another release may hold a task
 * at any of these steps: a step is renamed or removed only together with a new version of its kind.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createOperatorEnds } from '#compose/operator-task-ends.ts'
import { readConfig } from '#config.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { systemRandom as random } from '#kernel/id.ts'
import { freshGateway } from '../harness/gateway.ts'
import { isNightly } from '../proof/support/seed.ts'

type Line = { msg?: string; steps?: Record<string, string[]> }

const parsed = (line: string): Line => (line.startsWith('{') ? (JSON.parse(line) as Line) : {})

test('the steps of a kind do not change within a version', async (t) => {
  const recorded = JSON.parse(readFileSync(new URL('./task-steps.json', import.meta.url), 'utf8')) as Record<
    string,
    string[]
  >
  await using gateway = await freshGateway({ LOG_LEVEL: 'debug' })
  const steps = gateway.lines.map(parsed).find(({ msg }) => msg === 'task kinds')?.steps
  assert.ok(steps, 'the gateway has logged its kinds')
  const advice = 'Give the kind a new version and keep the steps of the old one'
  for (const [kind, names] of Object.entries(recorded)) {
    const lacking: string[] = names.filter((name) => !steps[kind]?.includes(name))
    assert.deepEqual(lacking, [], `${kind} lacks these steps. ${advice}`)
  }
  const engine = { transactions: {} as never, clock, random, instanceId: '' }
  const ends = createOperatorEnds({ config: readConfig({}), ...engine })
  // What a person confirms has no step, and so no effect.
  const kinds = Object.keys(steps).filter((each) => steps[each]!.length > 0)
  const lacking = kinds.filter((each) => !ends.has(each.split('@')[0]!))
  assert.deepEqual(lacking, [], 'an operator can end a task of each kind that has an effect')
  const added = Object.entries(steps).filter(([kind, names]) =>
    names.some((name) => !recorded[kind]?.includes(name)),
  )
  t.diagnostic(`not recorded yet: ${JSON.stringify(Object.fromEntries(added))}`)
  if (isNightly) assert.deepEqual(added, [], 'Add what is new to task-steps.json')
})
