import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import { policyStateOf, saveSpend } from '#features/policy/store.ts'
import { type Action, intentHash } from '#kernel/signer.ts'
import { query } from '#store/query.ts'
import { endUnexecuted } from '../harness/accept-task.ts'
import { createIdentityApp, faultOf, type IdentityApp, usdc, vault } from './identity-app.ts'
import { actionOf, intentOf, newTask, reserve as reserveIn, stranger } from './intents.ts'

let app: IdentityApp
before(async () => {
  app = await createIdentityApp()
})
after(() => app[Symbol.asyncDispose]())

const newcomer = async (from: IdentityApp = app) => {
  const caller = await from.auth.authenticate(`Bearer ${await from.token(await from.register())}`)
  const { wallets } = await from.ask('user_show', {}, caller)
  return { caller, userId: caller.userId, own: wallets[0]?.address ?? '' }
}
const reserve = (action: Action, from: IdentityApp | Awaited<ReturnType<IdentityApp['instance']>> = app) =>
  reserveIn(action, from)
const codeOf = (answer: Promise<unknown>) =>
  answer.then(
    () => 'ok',
    () => faultOf(answer).then(({ code, extras }) => String(extras.rule ?? code)),
  )
const dollars = (amount: number) => BigInt(amount) * 1_000_000n
const spent = async (userId: string) => {
  const text = `select coalesce(sum(usd_micros), 0) as sum from policy_spend where user_id = $1 and state = 'reserved'`
  return BigInt((await query<{ sum: string }>(app.db, text, [userId]))[0]?.sum ?? 0)
}

describe('caps', () => {
  test('64 concurrent reservations, on two instances, never exceed the cap of the day', async () => {
    const other = await app.instance()
    const { userId } = await newcomer()
    const tries = Array.from({ length: 64 }, (_, turn) =>
      codeOf(reserve(actionOf(app, userId, { usdMicros: dollars(300) }), turn % 2 ? app : other)),
    )
    const codes = await Promise.all(tries)
    assert.equal(codes.filter((code) => code === 'ok').length, 16)
    assert.equal(codes.filter((code) => code === 'per_day_usd').length, 48)
    assert.equal(await spent(userId), dollars(4800))
  })

  test('users neither wait for one another nor share a cap', async () => {
    const users = await Promise.all(Array.from({ length: 8 }, () => newcomer()))
    const action = (userId: string) => actionOf(app, userId, { usdMicros: dollars(1000) })
    const codes = await Promise.all(users.map(({ userId }) => codeOf(reserve(action(userId)))))
    assert.deepEqual(codes, Array(8).fill('ok'))
  })

  test('released and day-old spends do not count', async () => {
    const { userId } = await newcomer()
    const action = () => actionOf(app, userId, { usdMicros: dollars(1000) })
    const { taskId } = await reserve(action())
    for (let more = 0; more < 4; more++) await reserve(action())
    assert.equal(await codeOf(reserve(actionOf(app, userId))), 'per_day_usd')
    await endUnexecuted(app, taskId)
    assert.equal(await codeOf(reserve(action())), 'ok')
    assert.equal(await codeOf(reserve(actionOf(app, userId))), 'per_day_usd')
    app.time.offsetMs += 86_401_000
    assert.equal(await codeOf(reserve(actionOf(app, userId))), 'ok')
    app.time.offsetMs = 0
  })

  test('the sums by the minute equal the sum of the rows, at any moment and without any task', async () => {
    const second = fc.integer({ min: 0, max: 300 })
    const row = fc.record({
      second,
      usdMicros: fc.bigInt({ min: 0n, max: dollars(1000) }),
      released: fc.boolean(),
    })
    const asked = fc.record({ second, except: fc.nat(9) })
    await fc.assert(
      fc.asyncProperty(
        fc.array(row, { maxLength: 10 }),
        fc.array(asked, { minLength: 1, maxLength: 5 }),
        async (rows, asks) => {
          const userId = newTask(app)
          const begin = Date.UTC(2026, 0, 1)
          const at = (of: { second: number }) => new Date(begin + of.second * 1_000)
          const stored = rows.map((each) => ({ ...each, taskId: newTask(app) }))
          for (const each of stored) {
            await query(
              app.db,
              `insert into policy_spend (task_id, user_id, usd_micros, state, at) values ($1, $2, $3, 'reserved', $4)`,
              [each.taskId, userId, each.usdMicros, at(each)],
            )
            await saveSpend(app.db, each.taskId, each.usdMicros * 2n, 0n)
            const release = `update policy_spend set state = 'released' where task_id = $1`
            if (each.released) await query(app.db, release, [each.taskId])
          }
          for (const ask of asks) {
            const except = stored[ask.except]?.taskId ?? null
            const { spentMicros } = await policyStateOf(app.db, userId, { since: at(ask), except })
            const counted = stored.filter(
              (each) => !each.released && each.second > ask.second && each.taskId !== except,
            )
            assert.equal(
              spentMicros,
              counted.reduce((sum, each) => sum + each.usdMicros * 2n, 0n),
            )
          }
        },
      ),
      { numRuns: 30 },
    )
  })

  test('the check before a task agrees with the reservation in it', async () => {
    const { userId } = await newcomer()
    const asks: Partial<Action>[] = [
      {},
      { usdMicros: dollars(1001) },
      { chainId: '1' },
      { recipients: [stranger] },
      { recipients: [stranger], exit: true },
      { usdMicros: -1n },
    ]
    const verdicts = ['ok', 'per_transaction_usd', 'chain', 'recipient', 'recipient', 'amount']
    for (const [at, ask] of asks.entries()) {
      const action = actionOf(app, userId, ask)
      assert.equal(await codeOf(app.policy.policy.check(action)), verdicts[at])
      assert.equal(await codeOf(reserve(action)), verdicts[at])
    }
  })
})

describe('receipts', () => {
  const authorize = (intent: ReturnType<typeof intentOf>) =>
    app.transact((tx) => app.policy.policy.authorize(tx, intent))

  test('a reserved intent gets a receipt of its hash', async () => {
    const { userId, own } = await newcomer()
    const action = await reserve(actionOf(app, userId))
    const receipt = await authorize(intentOf(app, action, own))
    assert.equal(app.policy.isAuthentic(receipt), true)
    assert.deepEqual(
      [receipt.taskId, receipt.intentHash],
      [action.taskId, intentHash(intentOf(app, action, own))],
    )
  })

  test('without a reservation of this user for this task there is no receipt', async () => {
    const { userId, own } = await newcomer()
    const thief = await newcomer()
    const planned = actionOf(app, userId)
    assert.equal(await codeOf(authorize(intentOf(app, planned, own))), 'reservation')
    const action = await reserve(planned)
    const stolen = { ...action, userId: thief.userId }
    assert.equal(await codeOf(authorize(intentOf(app, stolen, thief.own))), 'reservation')
    assert.equal(
      await codeOf(authorize(intentOf(app, { ...action, taskId: newTask(app) }, own))),
      'reservation',
    )
    await endUnexecuted(app, action.taskId)
    assert.equal(await codeOf(authorize(intentOf(app, action, own))), 'reservation')
  })

  test('the spends of an intent are checked like its tokens and recipients', async () => {
    const { userId, own } = await newcomer()
    const action = await reserve(actionOf(app, userId))
    const intent = intentOf(app, action, own)
    const spends = [{ token: usdc, amountUnits: 1n, spender: stranger }]
    assert.equal(await codeOf(authorize({ ...intent, spends })), 'recipient')
  })

  test('a kill switch and a lowered limit between reservation and receipt take effect', async () => {
    const { userId, own, caller } = await newcomer()
    const action = await reserve(actionOf(app, userId))
    await app.policy.setSwitch({ scope: 'global' }, true, 'test')
    assert.equal(await codeOf(authorize(intentOf(app, action, own))), 'trading_paused')
    await app.policy.setSwitch({ scope: 'global' }, false, 'test')
    await app.ask('policy_tighten', { per_transaction_usd: '24.999999' }, caller)
    assert.equal(await codeOf(authorize(intentOf(app, action, own))), 'per_transaction_usd')
  })

  test('a task that signs more than it reserved takes the rest from the cap, or is denied', async () => {
    const { userId, own } = await newcomer()
    const action = await reserve(actionOf(app, userId, { usdMicros: dollars(1000) }))
    const codes: string[] = []
    for (let turn = 0; turn < 7; turn++) codes.push(await codeOf(authorize(intentOf(app, action, own))))
    assert.deepEqual(codes, [...Array(5).fill('ok'), 'per_day_usd', 'per_day_usd'])
    assert.equal(await spent(userId), dollars(5000))
    assert.equal(await codeOf(reserve(actionOf(app, userId, { usdMicros: 1n }))), 'per_day_usd')
  })

  test('64 concurrent reservations and receipts stay within the cap of the day', async () => {
    const { userId, own } = await newcomer()
    const run = async () => {
      const action = await reserve(actionOf(app, userId, { usdMicros: dollars(200) }))
      for (let turn = 0; turn < 3; turn++) await authorize(intentOf(app, action, own))
    }
    await Promise.all(Array.from({ length: 64 }, () => codeOf(run())))
    assert.equal(await spent(userId), dollars(5000))
  })
})

describe('switches and limits', () => {
  test('a killed user opens nothing, on any instance, and can still exit', async () => {
    const { userId, own, caller } = await newcomer()
    const other = await app.instance()
    const { since } = await app.ask('policy_kill', { on: true, scope: 'user' }, caller)
    assert.equal((await app.ask('policy_kill', { on: true }, caller)).since, since)
    const fault = await faultOf(other.policy.policy.check(actionOf(app, userId)))
    assert.deepEqual([fault.code, fault.extras], ['trading_paused', { scope: 'user', since }])
    assert.equal(await codeOf(reserve(actionOf(app, userId))), 'trading_paused')
    assert.equal((await app.ask('user_show', {}, caller)).policy_summary.paused, true)

    const planned = actionOf(app, userId, { exit: true, usdMicros: 0n, recipients: [own, vault] })
    const exit = await reserve(planned)
    const receipt = await app.transact((tx) => app.policy.policy.authorize(tx, intentOf(app, exit, own)))
    assert.equal(app.policy.isAuthentic(receipt), true)
    assert.equal(await codeOf(app.policy.policy.check(actionOf(app, (await newcomer()).userId))), 'ok')
  })

  test('an agent cannot switch itself on again; the operator can', async () => {
    const { userId, caller } = await newcomer()
    assert.deepEqual(await app.ask('policy_kill', { on: false }, caller), {
      on: false,
      scope: 'user',
      since: null,
    })
    await app.ask('policy_kill', { on: true }, caller)
    const fault = await faultOf(app.ask('policy_kill', { on: false }, caller))
    assert.equal(fault.code, 'step_up_required')
    assert.match(fault.extras.intent_sha256 as string, /^[0-9a-f]{64}$/)
    await app.policy.setSwitch({ scope: 'user', userId }, false, 'operator')
    assert.equal(await codeOf(reserve(actionOf(app, userId))), 'ok')
  })

  test('limits can be lowered step by step and never widened', async () => {
    const { userId, caller } = await newcomer()
    const fresh = await app.ask('policy_show', {}, caller)
    assert.deepEqual(
      [fresh.version, fresh.per_transaction_usd, fresh.per_day_usd, fresh.tokens, fresh.chains],
      [0, '1000', '5000', null, ['8453', '42161']],
    )
    const wanted = { per_day_usd: '100', chains: ['8453'], tokens: [{ chain_id: '8453', address: usdc }] }
    const tight = await app.ask('policy_tighten', wanted, caller)
    assert.deepEqual([tight.version, tight.per_day_usd, tight.per_transaction_usd], [1, '100', '1000'])
    assert.equal((await app.ask('policy_tighten', {}, caller)).version, 1)

    const wider = { per_day_usd: '100.000001', chains: ['8453', '42161'], per_transaction_usd: '1' }
    const fault = await faultOf(app.ask('policy_tighten', wider, caller))
    assert.deepEqual([fault.code, fault.extras.fields], ['step_up_required', ['per_day_usd', 'chains']])
    assert.deepEqual(await app.ask('policy_show', {}, caller), tight)

    assert.equal(await codeOf(reserve(actionOf(app, userId, { chainId: '42161', recipients: [] }))), 'chain')
    assert.equal(await codeOf(reserve(actionOf(app, userId, { tokens: [stranger] }))), 'token')
    assert.equal(await codeOf(reserve(actionOf(app, userId, { usdMicros: dollars(101) }))), 'per_day_usd')
    assert.equal(
      await codeOf(reserve(actionOf(app, userId, { tokens: [usdc.toUpperCase().replace('X', 'x')] }))),
      'ok',
    )
  })

  test('lists accept addresses on served chains, at most a hundred and each once', async () => {
    const { caller } = await newcomer()
    const chainAddress = { chain_id: '8453', address: usdc }
    const other = { chain_id: '8453', address: stranger }
    const { tokens } = await app.ask(
      'policy_tighten',
      { tokens: [chainAddress, chainAddress, other, chainAddress] },
      caller,
    )
    assert.equal((tokens as unknown[]).length, 2)
    const foreign = await faultOf(
      app.ask(
        'policy_tighten',
        { recipients: [chainAddress, { ...chainAddress, chain_id: '31337' }] },
        caller,
      ),
    )
    assert.equal(foreign.code, 'validation')
    assert.deepEqual(
      foreign.issues.map(({ path, type }) => [path, type]),
      [[['recipients', 1, 'chain_id'], 'chain_not_served']],
    )
  })

  test('of many concurrent changes the strictest limits remain', async () => {
    const { caller } = await newcomer()
    const asks = Array.from({ length: 20 }, (_, at) =>
      app.ask('policy_tighten', { per_day_usd: String(20 - at) }, caller),
    )
    await Promise.allSettled(asks)
    assert.equal((await app.ask('policy_show', {}, caller)).per_day_usd, '1')
  })
})
