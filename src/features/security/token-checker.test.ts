import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assessmentOf, type TokenRef } from '#kernel/money/token-security.ts'
import { createTokenReports } from '#kernel/money/token-security-reports.ts'
import type { TokenProbe } from '#upstreams/evm/token-probe.ts'
import { createSecurity } from './security.ts'
import { type CheckerDeps, createChecker } from './token-checker.ts'

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
  const { verdicts } = createSecurity({ ...depsOf(reader), isSolanaAddress })
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

test('a check whose time is over is asked of no node any more', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { asked, reader, answer } = slowNode(traded)
  const checker = checkerOf(reader)
  const many = checker.check(tokens(60), { owner: 'many', maxAgeMs: 10_000 })
  t.mock.timers.tick(10_000)
  const late = (await many).filter(({ status }) => status === 'skipped')
  assert.equal(late.length, 60)
  for (let left = 60; left > 0; left -= 1) await answer()
  assert.equal(asked.length, 16)
})

test('users who fill all places of the queue keep no trade of another one out', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { asked, reader, answer } = slowNode(traded)
  const { verdicts } = createSecurity({ ...depsOf(reader), isSolanaAddress })
  const all = tokens(2_201)
  const last = all.pop()!
  const trades = all.map((token, at) => verdicts.verdictOf([token], { userId: `many ${at % 10}` }))
  const single = verdicts.verdictOf([last], { userId: 'few' })
  for (let turns = 11; turns > 0; turns -= 1) await answer()
  assert.ok(asked.includes(last.address), 'it waits for one turn of each other user')
  for (let turns = 16; turns > 0; turns -= 1) await answer()
  assert.equal((await single)[0]!.status, 'passed')
  t.mock.timers.tick(10_000)
  await Promise.all(trades)
})

const requestsPerMinute = 40
/** A service that calls every token a trap. */
const trapReports = () =>
  createTokenReports(
    {
      source: 'service',
      covers: () => true,
      urlOf: (_, address) => address,
      assess: () => assessmentOf('service', [{ code: 'known', level: 'honeypot', message: 'a trap' }]),
    },
    { net: { fetch: async () => ({ status: 200, body: '{}' }) }, requestsPerMinute },
  )

test('the checks of users leave requests of the services for the trades of others', async () => {
  const probe = async () => traded
  const reader = { family: 'evm', chain: { row, probe } } as unknown as CheckerDeps['readers'][number]
  const deps = { ...depsOf(reader), reports: [trapReports()], isSolanaAddress }
  const { verdicts } = createSecurity(deps)
  const checker = createChecker(deps)
  const checks = { owner: 'many', maxAgeMs: 10_000 }
  const all = tokens(2 * requestsPerMinute + 1)
  await checker.check(all.slice(0, requestsPerMinute), checks)
  for (const token of all.slice(requestsPerMinute, -1))
    await verdicts.verdictOf([token], { userId: 'trader' })
  const last = all.slice(-1)
  const [unreported] = await checker.check(last, checks)
  assert.equal(unreported!.status, 'passed')
  const [ofTrade] = await checker.check(last, { owner: 'trade:few', maxAgeMs: 1_000, isTrade: true })
  assert.equal(ofTrade!.status, 'flagged', 'the service knows that it is a trap')
  const [bought] = await verdicts.verdictOf([all[requestsPerMinute - 1]!], { userId: 'few' })
  assert.equal(bought!.status, 'flagged')
})

test('a trade shares no verdict that lacks a report because another user has used up the own share', async () => {
  const { asked, reader, answer } = slowNode(traded)
  const { verdicts } = createSecurity({ ...depsOf(reader), reports: [trapReports()], isSolanaAddress })
  const statusOf = async (token: TokenRef, userId: string) =>
    (await verdicts.verdictOf([token], { userId }))[0]!.status
  const all = tokens(requestsPerMinute)
  const [known, running, queued] = all.splice(-3) as [TokenRef, TokenRef, TokenRef]
  for (const token of all) {
    const verdict = statusOf(token, 'trader')
    await answer()
    await verdict
  }
  const before = statusOf(known, 'trader')
  await answer()
  assert.equal(await before, 'passed')
  const after = statusOf(known, 'few')
  await answer()
  assert.equal(await after, 'flagged')
  const first = statusOf(running, 'trader')
  const joined = statusOf(running, 'few')
  await answer()
  assert.equal(await first, 'passed')
  await answer()
  assert.equal(await joined, 'flagged')
  const crowd = all.slice(-16).map((token) => statusOf(token, 'crowd'))
  const turns = ['trader', 'few'].map((userId) => statusOf(queued, userId))
  for (let left = 18; left > 0; left -= 1) await answer()
  await Promise.all(crowd)
  assert.deepEqual(await Promise.all(turns), ['passed', 'flagged'])
  assert.equal(asked.length, all.length + 4 + 16 + 2)
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
