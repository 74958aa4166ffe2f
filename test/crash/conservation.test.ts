/** Many users act concurrently, then every process is killed: no user has more or less money than before. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type Amounts,
  assertConserved,
  compareFunds,
  liveTasks,
  readFaucetGrant,
} from '../harness/conservation.ts'
import { dataFolder, eventually, type Gateway, launch } from '../harness/gateway.ts'
import { childrenOf, killAtOnce, processesOf, programOf } from '../harness/processes.ts'
import { createFundedPerson, type Person, personOf } from '../journeys/users.ts'
import { bySize, proofSeed } from '../proof/support/seed.ts'
import { randomOf } from './venue-traders.ts'

const users = bySize({ short: 3, full: 5, nightly: 20 })
const loadMs = bySize({ short: 10_000, full: 60_000, nightly: 15 * 60_000 })
/** A short load continues until each of these executed, because a busy machine does few in its time. */
const required = ['/v1/earn/deposit', '/v1/earn/withdraw', '/v1/perp/open', '/v1/perp/fund']
const loadMsMax = 60_000
const positionsEach = 12
const settleMsMax = bySize({ short: 240_000, full: 240_000, nightly: 600_000 })
const requestMsMax = 60_000

type Positions = { positions: { id: string; shares: string }[] }
type Answer = { code?: string; outcome?: string | null; task_id?: string }
type Trader = { person: Person; given: Amounts; random: () => number }
type Load = { isOver: () => boolean; counts: Map<string, number>; mistakes: string[] }

/** A request for too much is rejected; any other failure is an error of the test. */
const isExpected = (status: number): boolean => [200, 409, 429, 503].includes(status)

const between = ({ random }: Trader, min: number, max: number) => min + Math.floor(random() * (max - min + 1))

async function send(load: Load, { person }: Trader, path: string, body: object): Promise<Answer | undefined> {
  if (load.isOver()) return undefined
  const query = '?wait=true&timeout=30'
  const signal = AbortSignal.timeout(requestMsMax)
  const reply = await Promise.race([
    person.call<Answer>(`POST ${path}${query}`, { body }),
    new Promise<undefined>((resolve) => signal.addEventListener('abort', () => resolve(undefined))),
  ]).catch(() => undefined)
  // The process may have died; after the restart the task shows the outcome of the call.
  if (!reply) return undefined
  const name = `${path} ${reply.status}`
  load.counts.set(name, (load.counts.get(name) ?? 0) + 1)
  if (!isExpected(reply.status)) load.mistakes.push(`${name} ${JSON.stringify(reply.body)}`)
  return reply.status === 200 ? reply.body : undefined
}

const activeOf = async ({ person }: Trader) => {
  const { body } = await person.call<Positions>('GET /v1/earn/positions?status=active&history_limit=1')
  return body.positions
}

/** Deposits and withdrawals 5 to 90 ms apart, the smallest first, each without waiting for the previous one. */
async function earn(load: Load, trader: Trader): Promise<void> {
  const { random } = trader
  const going: Promise<unknown>[] = []
  for (let n = 0; n < positionsEach && !load.isOver(); n++) {
    going.push(send(load, trader, '/v1/earn/deposit', { amount_usdc: String(between(trader, 5, 60)) }))
    await delay(between(trader, 5, 90))
  }
  // Half of the time withdrawals begin while deposits still run.
  if (random() < 0.5) await Promise.all(going)
  const positions = await activeOf(trader)
  const smallest = positions.sort((a, b) => (BigInt(a.shares) < BigInt(b.shares) ? -1 : 1))
  for (const { id } of smallest) {
    if (load.isOver()) break
    const draw = random()
    const body = draw < 0.75 ? {} : { amount_usdc: '1.5' }
    if (draw < 0.9) going.push(send(load, trader, '/v1/earn/withdraw', { position_id: id, ...body }))
    else going.push(send(load, trader, '/v1/earn/deposit', { position_id: id, amount_usdc: '7' }))
    await delay(between(trader, 5, 90))
  }
  await Promise.all(going)
}

async function trade(load: Load, trader: Trader): Promise<void> {
  const { random } = trader
  const asset = random() < 0.5 ? 'BTC' : 'ETH'
  const draw = random()
  if (draw < 0.25) await send(load, trader, '/v1/perp/fund', { amount_usd: String(between(trader, 20, 60)) })
  else if (draw < 0.35) await send(load, trader, '/v1/perp/withdraw', { amount_usd: '5' })
  else if (draw < 0.6) {
    const side = random() < 0.5 ? 'long' : 'short'
    await send(load, trader, '/v1/perp/open', { asset, side, notional_usd: '15', leverage: 5 })
  } else if (draw < 0.75) await send(load, trader, '/v1/perp/close', { asset })
  else if (draw < 0.9) await send(load, trader, '/v1/spot_venue/buy', { asset: 'HYPE', notional_usdc: 12 })
  else await send(load, trader, '/v1/spot_venue/sell', { asset: 'HYPE', size: '0.3' })
}

async function repeatedly(load: Load, once: () => Promise<void>): Promise<void> {
  while (!load.isOver()) {
    await once().catch((error: unknown) => {
      // A read that finds no process ends the load of this user, and nothing else.
      if (!load.isOver()) throw error
    })
    await delay(100)
  }
}

const start = (path: string): Promise<Gateway> =>
  launch({
    readyMsMax: 120_000,
    env: {
      DATA_DIR: path,
      TOKEN_TTL_SECONDS: '3600',
      SPONSOR_USER_DAY: '10',
      RATE_AUTH: '0',
      RATE_READ: '0',
      RATE_MONEY: '0',
      RATE_EXIT: '0',
      RATE_REFUSED: '0',
      HYPERLIQUID_WEIGHT_PER_MINUTE: '0',
    },
  })
/** The embedded server; its folder is elsewhere where the data folder is closed to its account. */
function databaseOf(dataDir: string): { home: string; pid: number } {
  const { home } = JSON.parse(readFileSync(join(dataDir, 'postgres.json'), 'utf8')) as { home: string }
  const folderPath = isAbsolute(home) ? home : join(dataDir, home)
  const pidFile = join(folderPath, 'data', 'postmaster.pid')
  const [pid = ''] = existsSync(pidFile) ? readFileSync(pidFile, 'utf8').split('\n') : []
  return { home: folderPath, pid: Number(pid) }
}

const controlOf = (gateway: Gateway): string =>
  gateway.lines.find((line) => line.startsWith('world '))?.split(/\s+/)[1] ?? ''

const title =
  'after a mixed load and the death of gateway, database, chains and venue each user has the granted funds, to the unit'
const linux = { skip: process.platform === 'linux' ? false : 'reads /proc' }

test(title, linux, async (t) => {
  const seed = proofSeed('conservation')
  const folder = dataFolder()
  let gateway = await start(folder.path)
  t.after(async () => {
    await gateway.stop()
    rmSync(databaseOf(folder.path).home, { recursive: true, force: true })
    folder[Symbol.dispose]()
  })
  const traders: Trader[] = []
  for (let n = 0; n < users; n++) {
    const person = await createFundedPerson(gateway.url)
    const given = await readFaucetGrant(controlOf(gateway), person)
    traders.push({ person, given, random: randomOf(seed + n) })
    const setup = await person.call<Answer>('POST /v1/perp/setup?wait=true', { body: {} })
    assert.equal(setup.status, 200, JSON.stringify(setup.body))
    const funded = await person.call<Answer>('POST /v1/perp/fund?wait=true', { body: { amount_usd: '200' } })
    assert.equal(funded.body.outcome, 'executed', JSON.stringify(funded.body))
  }

  const ends = performance.now() + loadMs
  let lost = false
  const load: Load = { isOver: () => lost, counts: new Map(), mistakes: [] }
  const working = Promise.all(
    traders.flatMap((trader) => [
      repeatedly(load, () => earn(load, trader)),
      repeatedly(load, () => trade(load, trader)),
    ]),
  )
  const did = (path: string) => load.counts.get(`${path} 200`) ?? 0
  const everyPath = async () => (required.every((path) => did(path) > 0) ? true : undefined)
  await Promise.race([working, delay(ends - performance.now())])
  await Promise.race([working, eventually(everyPath, 'each kind of task was executed', loadMsMax)])
  lost = true
  const server = databaseOf(folder.path)
  const killedPids = [...processesOf(folder.path), server.pid, ...childrenOf(server.pid)]
  const programs = killedPids.map(programOf)
  assert.equal(programs.filter((each) => each === 'anvil').length, 4, programs.join(', '))
  // The gateway, the world, Solana and the venue.
  assert.equal(programs.filter((each) => each === 'node').length, 4, programs.join(', '))
  assert.ok(killedPids.includes(gateway.pid))
  await killAtOnce(killedPids)
  await gateway.kill()
  await working
  const logged = gateway.lines.filter((line) => /"level":(50|60)|"level":"error"/.test(line)).slice(0, 20)
  assert.deepEqual(load.mistakes, [], [...load.mistakes, ...logged].join('\n'))

  gateway = await start(folder.path)
  const at = { url: gateway.url, control: controlOf(gateway) }
  for (const { person, given } of traders) {
    const owner = await personOf(gateway.url, person)
    const ended = async () => ((await liveTasks(at.url, owner)).length === 0 ? true : undefined)
    await eventually(ended, `the tasks of ${owner.evm} have ended`, settleMsMax)
    assertConserved(await compareFunds(at, owner, given))
  }
  const counted = [...load.counts].sort().map(([name, count]) => `${name}: ${count}`)
  t.diagnostic(`${users} users, ${loadMs / 1_000} s; ${counted.join(', ')}`)
  for (const path of required) assert.ok(did(path) > 0, `no request was accepted ${path}`)
})
