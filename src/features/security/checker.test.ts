import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TokenProbe } from '#upstreams/evm/probe.ts'
import { type CheckerDeps, createChecker } from './checker.ts'
import { security } from './security.ts'

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
  Array.from({ length: count }, (_, at) => ({ chainId, address: `0x${String(at + 1).padStart(40, '0')}` }))

const step = { done: true, quotedUnits: 100n, gotUnits: 100n, reason: '' }
const trade = { buy: step, transfer: step, sell: step, liquidityUnits: 6_000_000_000n }
const traded: TokenProbe = { ...noPool, trade: { type: 'traded', trade } }

/** A node that answers each probe on demand. */
function slowNode(result = noPool) {
  const asked: string[] = []
  const answers: (() => void)[] = []
  const probe = (address: string) => {
    asked.push(address)
    return new Promise<TokenProbe>((resolve) => answers.push(() => resolve(result)))
  }
  const reader = { family: 'evm', chain: { row, probe } } as unknown as CheckerDeps['readers'][number]
  const answer = async () => {
    answers.shift()?.()
    await new Promise(setImmediate)
  }
  return { asked, reader, answer }
}
const isSolanaAddress = () => false
const depsOf = (reader: CheckerDeps['readers'][number]) => ({
  readers: [reader],
  reports: [],
  clock: { now: () => new Date(0) },
})
const checkerOf = (reader: CheckerDeps['readers'][number]) => createChecker(depsOf(reader))

test('a trade does not wait in the turn of a user who checks the same token among many', async () => {
  const { asked, reader, answer } = slowNode()
  const checker = checkerOf(reader)
  const many = tokens(60)
  const last = many.at(-1)!
  const all = checker.check(many, { owner: 'many', maxAgeMs: 10_000 })
  const trade = checker.check([last], { owner: 'trade:other', maxAgeMs: 1_000 })
  assert.equal(asked.length, 16)
  await answer()
  await answer()
  assert.ok(asked.includes(last.address), 'the token of the trade is checked at its own turn')
  for (let left = 60; left > 0; left -= 1) await answer()
  assert.equal((await trade)[0]!.status, 'api_unavailable')
  assert.equal((await all).length, 60)
})

test('users take turns with their trades, also where both buy the same token', async () => {
  const { asked, reader, answer } = slowNode(traded)
  const { verdicts } = security({ ...depsOf(reader), isSolanaAddress })
  const many = tokens(61)
  const [other, last] = [many.pop()!, many.at(-1)!]
  const all = many.map((token) => verdicts.verdictOf([token], { userId: 'many' }))
  const trades = [other, last].map((token) => verdicts.verdictOf([token], { userId: 'few' }))
  assert.equal(asked.length, 16)
  for (let turns = 4; turns > 0; turns -= 1) await answer()
  assert.ok(asked.includes(other.address), 'a token that nobody else buys')
  assert.ok(asked.includes(last.address), 'the last one of the other user')
  for (let left = 61; left > 0; left -= 1) await answer()
  await Promise.all([...all, ...trades])
  assert.equal(asked.length, 61, 'both users share the check of one token')
})

test('a check that runs is shared without a turn, and an unknown verdict is not kept', async () => {
  const { asked, reader, answer } = slowNode()
  const checker = checkerOf(reader)
  const [token, ...many] = tokens(17)
  const options = (owner: string) => ({ owner, maxAgeMs: 10_000 })
  const first = checker.check([token!], options('a'))
  const crowd = checker.check(many, options('b'))
  const second = checker.check([token!], options('c'))
  await answer()
  assert.deepEqual(await first, await second)
  assert.equal(asked.length, 17)
  for (let left = 16; left > 0; left -= 1) await answer()
  await crowd
  const again = checker.check([token!], options('a'))
  assert.equal(asked.length, 18)
  await answer()
  await again
})

test('a verdict says what the pool of the simulation holds, and null where there is none', async () => {
  const [, pooled, alone] = tokens(3)
  const probe = async (address: string) => (address === pooled!.address ? traded : noPool)
  const reader = { family: 'evm', chain: { row, probe } } as unknown as CheckerDeps['readers'][number]
  const verdicts = await checkerOf(reader).check([pooled!, alone!], { owner: 'user', maxAgeMs: 0 })
  assert.deepEqual(
    verdicts.map(({ poolMicros }) => poolMicros),
    [6_000_000_000n, null],
  )
})
