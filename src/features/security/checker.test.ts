import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TokenProbe } from '#upstreams/evm/probe.ts'
import { type CheckerDeps, createChecker } from './checker.ts'

const chainId = '8453'
const row = {
  id: chainId,
  family: 'evm',
  swaps: {},
  native: { address: '0x00' },
  tokens: [],
}
const noPool: TokenProbe = {
  block: 1n,
  hasCode: true,
  isUpgradeable: false,
  isMinimalProxy: false,
  owner: null,
  trade: { type: 'no_pool' },
}
const tokens = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ chainId, address: `0x${String(at).padStart(40, '0')}` }))

/** A node that answers each probe on demand. */
function slowNode() {
  const asked: string[] = []
  const answers: (() => void)[] = []
  const probe = (address: string) => {
    asked.push(address)
    return new Promise<TokenProbe>((resolve) => answers.push(() => resolve(noPool)))
  }
  const reader = { family: 'evm', chain: { row, probe } } as unknown as CheckerDeps['readers'][number]
  const answer = async () => {
    answers.shift()?.()
    await new Promise(setImmediate)
  }
  return { asked, reader, answer }
}
const checkerOf = (reader: CheckerDeps['readers'][number]) =>
  createChecker({ readers: [reader], reports: [], clock: { now: () => new Date(0) } })

test('a trade does not wait in the turn of a user who checks the same token among many', async () => {
  const { asked, reader, answer } = slowNode()
  const checker = checkerOf(reader)
  const many = tokens(60)
  const last = many.at(-1)!
  const all = checker.check(many, { owner: 'many', maxAgeMs: 10_000 })
  const trade = checker.check([last], { owner: 'trade:1', maxAgeMs: 1_000, isUrgent: true })
  assert.equal(asked.length, 16)
  await answer()
  await answer()
  assert.ok(asked.includes(last.address), 'the token of the trade is checked at its own turn')
  for (let left = 60; left > 0; left -= 1) await answer()
  assert.equal((await trade)[0]!.status, 'api_unavailable')
  assert.equal((await all).length, 60)
})

test('a verdict says what the pool of the simulation holds, and null where there is none', async () => {
  const step = { done: true, quotedUnits: 100n, gotUnits: 100n, reason: '' }
  const trade = { buy: step, transfer: step, sell: step, liquidityUnits: 6_000_000_000n }
  const traded: TokenProbe = { ...noPool, trade: { type: 'traded', trade } }
  const [, pooled, alone] = tokens(3)
  const probe = async (address: string) => (address === pooled!.address ? traded : noPool)
  const reader = { family: 'evm', chain: { row, probe } } as unknown as CheckerDeps['readers'][number]
  const verdicts = await checkerOf(reader).check([pooled!, alone!], { owner: 'user', maxAgeMs: 0 })
  assert.deepEqual(
    verdicts.map(({ poolMicros }) => poolMicros),
    [6_000_000_000n, null],
  )
})
