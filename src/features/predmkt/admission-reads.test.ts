import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { PredictionMarket } from '#kernel/money/prediction-views.ts'
import { createAdmissionReads } from './admission-reads.ts'
import { createReadBudget } from './read-budget.ts'

const codeOf = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'admitted',
    (error: unknown) => (error instanceof Fault ? error.code : String(error)),
  )

function openReads() {
  let nowMs = 1_000_000
  let asked = 0
  const budget = createReadBudget(() => nowMs)
  const venue = {
    protocolOf: (id: string) => (/^\d+$/.test(id) ? 'v1' : undefined),
    async market() {
      asked += 1
      return undefined as PredictionMarket | undefined
    },
  }
  const views = { takeAdmission: (userId: string) => budget.take(userId, 'admission') }
  return {
    reads: createAdmissionReads({ venue, views }, () => nowMs),
    asked: () => asked,
    pass(ms: number) {
      nowMs += ms
    },
  }
}

test('an outcome that the venue does not know is asked for once in some seconds, for all users together', async () => {
  const { reads, asked, pass } = openReads()
  for (let count = 0; count < 100; count += 1)
    assert.equal(await codeOf(reads.marketOf(`user ${count % 3}`, '7')), 'not_found')
  assert.equal(asked(), 1)
  assert.equal(await codeOf(reads.marketOf('ada', 'no id')), 'not_found')
  assert.equal(asked(), 1)
  pass(6_000)
  assert.equal(await codeOf(reads.marketOf('ada', '7')), 'not_found')
  assert.equal(asked(), 2)
})

test('one user asks for a bounded number of outcomes, whatever they are, and leaves the others theirs', async () => {
  const { reads, asked, pass } = openReads()
  const codes = []
  for (let count = 0; count < 100; count += 1) codes.push(await codeOf(reads.marketOf('ada', String(count))))
  assert.equal(asked(), 40)
  assert.ok(codes.slice(40).every((code) => code === 'rate_limited'))
  assert.equal(await codeOf(reads.marketOf('bob', '1000')), 'not_found')
  pass(11_000)
  assert.equal(await codeOf(reads.marketOf('ada', '2000')), 'not_found')
})
