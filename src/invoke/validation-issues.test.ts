import assert from 'node:assert/strict'
import { test } from 'node:test'
import { issuesMax } from '#kernel/contract/fault.ts'
import { addSchemaErrors, issueList } from './validation-issues.ts'

const long = (name: string) => ({
  location: 'body' as const,
  path: [name],
  msg: 'x'.repeat(3_000),
  type: 'value_error',
})

test('the first issue that does not fit ends the list, however short the next one is', () => {
  const issues = issueList()
  for (const name of ['a', 'b', 'c']) issues.add(long(name))
  assert.equal(issues.isFull(), true)
  issues.add({ ...long('d'), msg: 'short' })
  assert.deepEqual(
    issues.items.map(({ path }) => path[0]),
    ['a', 'b'],
  )
})

test('errors beyond a list of long issues are not described', () => {
  const issues = issueList()
  let described = 0
  const unknownField = () => {
    described += 1
    return 'x'.repeat(1_000)
  }
  const errors = Array.from({ length: 1_000 }, (_, at) => ({
    keyword: 'additionalProperties',
    instancePath: '',
    schemaPath: '',
    params: { additionalProperty: `field_${at}` },
  }))
  addSchemaErrors(issues, errors, { location: 'body', root: {}, unknownField })
  assert.ok(issues.items.length > 0)
  assert.ok(described <= issuesMax, `${described} errors were described`)
})
