/** Deposits and withdrawals are signed in the commit that accepts them, with what their admission has read. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { worldKey, worldKeyId } from '#config-safety.ts'
import { createEnvKek, createKeyEncryptionKeys } from '#engines/custody/key-encryption-keys.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { systemRandom } from '#kernel/id.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { query } from '#store/query.ts'
import { eventually } from '../harness/gateway.ts'
import { type ChainsApp, createChainsApp, type User } from './chains-app.ts'

const time = { offsetMs: 0, stoppedAtMs: 0 }
const clock: Clock = { now: () => new Date((time.stoppedAtMs || Date.now()) + time.offsetMs) }
const simulationMethod = 'eth_estimateGas'

/** What was read does not become outdated on a busy machine. */
async function withoutDelay<Accepted>(accept: () => Promise<Accepted>): Promise<Accepted> {
  time.stoppedAtMs = Date.now()
  try {
    return await accept()
  } finally {
    time.stoppedAtMs = 0
  }
}

/** Counts simulations; `afterOne` runs when one was answered. */
const simulations = { count: 0, afterOne: () => {} }
const wrapNet = (net: Net): Net => ({
  async fetch(request) {
    const reply = await net.fetch(request)
    const made = (request.body ?? '').split(simulationMethod).length - 1
    simulations.count += made
    if (made > 0) simulations.afterOne()
    return reply
  },
})

const kek = createEnvKek(worldKeyId, worldKey, systemRandom)
/** `opened`: names the wallet of each key that was opened. */
const custody = { isAway: false, opened: new Set<string>() }
const keys = createKeyEncryptionKeys({
  ...kek,
  unwrap(wrapped, binding) {
    custody.opened.add(binding)
    return kek.unwrap(wrapped, binding)
  },
})
const keysThatVanish = {
  ...keys,
  find: (id: string) => (custody.isAway ? undefined : keys.find(id)),
}

describe('a deposit or withdrawal whose admission is fresh', () => {
  let app: ChainsApp
  before(async () => {
    app = await createChainsApp({ clock, wrapNet, keyEncryptionKeys: keysThatVanish })
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
  })
  beforeEach(() => {
    simulations.count = 0
    simulations.afterOne = () => {}
    custody.isAway = false
    time.stoppedAtMs = 0
  })

  const deposit = (user: User, wait = true) =>
    app.call('earn_deposit', { amount_usdc: '100' }, user, { wait })
  const ended = (user: User, { task_id }: { task_id: string }) => app.ended(user, task_id)
  const rows = (sql: string, ...values: unknown[]) =>
    query<Record<string, unknown>>(app.database.pool, sql, values)

  const effectsOf = ({ task_id }: { task_id: string }) =>
    rows('select step, policy_receipt from effect where task_id = $1', task_id)

  test('is simulated once, and is signed when its request is answered', async () => {
    const user = await app.fundedUser()
    const accepted = await withoutDelay(() => deposit(user, false))
    const stored = await effectsOf(accepted)
    assert.equal(stored.length, 1)
    assert.ok(stored[0]?.policy_receipt)
    assert.equal(simulations.count, 1)
    const done = await ended(user, accepted)
    assert.equal(done.outcome, 'executed')
    assert.equal(simulations.count, 1)

    const { position_id } = (done.result ?? {}) as { position_id: string }
    for (const input of [{ position_id, amount_usdc: '10' }, { position_id }]) {
      simulations.count = 0
      const withdrawal = await withoutDelay(() => app.call('earn_withdraw', input, user, { wait: false }))
      assert.equal((await effectsOf(withdrawal)).length, 1)
      assert.equal(simulations.count, 1)
      assert.equal((await ended(user, withdrawal)).outcome, 'executed')
      assert.equal(simulations.count, 1)
    }
    assert.equal(await app.flows(user), 3)
  })

  test('is simulated again by its step, where more than 3 s have passed since', async () => {
    const user = await app.fundedUser()
    simulations.afterOne = () => {
      time.offsetMs += 3_001
      simulations.afterOne = () => {}
    }
    const accepted = await deposit(user, false)
    assert.equal((await ended(user, accepted)).outcome, 'executed')
    assert.equal(simulations.count, 2)
    assert.equal(await app.flows(user), 1)
  })

  test('is accepted without a signature while the key is away, and signed when it is back', async () => {
    const user = await app.fundedUser()
    custody.isAway = true
    const accepted = await deposit(user, false)
    assert.deepEqual(await effectsOf(accepted), [])
    custody.isAway = false
    assert.equal((await ended(user, accepted)).outcome, 'executed')
    assert.equal(await app.flows(user), 1)
  })

  test('is refused by the policy without a task, a nonce or a signature', async () => {
    const user = await app.fundedUser()
    const counters = () => rows(`select signer, next from nonce_sequence where kind = 'evm' order by signer`)
    const before = await counters()
    await app.call('policy_kill', { on: true }, user)
    const fault = await deposit(user, false).catch((error: unknown) => error)
    assert.ok(fault instanceof Fault)
    assert.equal(fault.code, 'trading_paused')
    assert.deepEqual(await rows('select id from task where user_id = $1', user.id), [])
    assert.deepEqual(await counters(), before)
  })

  test('shares commits with those of other users, and no nonce is skipped or taken twice', async () => {
    const users = await Promise.all(Array.from({ length: 12 }, () => app.fundedUser()))
    const opened = ({ evm }: User) => [...custody.opened].some((binding) => binding.includes(evm))
    // Readings do not become outdated while the commits wait.
    time.stoppedAtMs = Date.now()
    // While the first commit of each of the four sponsors waits for its nonces, the others join the next one.
    const lock = await app.database.pool.connect()
    let accepted: { task_id: string }[]
    try {
      await lock.query(`begin; select 1 from nonce_sequence where kind = 'evm' for update`)
      const deposits = Promise.all(users.map((user) => deposit(user, false)))
      const waiting = () =>
        rows(
          `select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
        )
      // Between the key of a user and the queue of its sponsor nothing is read, so that all wait when this reading is done.
      await eventually(
        async () => users.every(opened) && (await waiting()).length > 0,
        'the users have signed, and commits wait',
      )
      await lock.query('commit')
      accepted = await deposits
    } finally {
      lock.release()
    }
    const shared = await rows(
      `select count(*) from tx_attempt a join effect e on e.id = a.effect_id where e.task_id = any($1::uuid[])
       group by a.xmin::text having count(*) > 1`,
      accepted.map(({ task_id }) => task_id),
    )
    assert.ok(shared.length > 0, 'several deposits share a commit')
    for (const each of accepted) assert.equal((await effectsOf(each)).length, 1)
    assert.equal(simulations.count, users.length)
    for (const [at, user] of users.entries()) {
      assert.equal((await ended(user, accepted[at]!)).outcome, 'executed')
      assert.equal(await app.flows(user), 1)
    }
    const sequences = await rows(
      `select s.signer, s.next, count(distinct c.nonce) as used, min(c.nonce) as first
       from nonce_sequence s join tx_attempt c on c.signer = s.signer and c.chain = s.chain and c.nonce_kind = s.kind
       where s.kind = 'evm' group by s.signer, s.next`,
    )
    assert.ok(sequences.length > 1, 'several sponsors have paid')
    for (const { next, used, first } of sequences) assert.equal(Number(used), Number(next) - Number(first))
  })
})
