import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import { deleteRecipient, insertRecipient, recipientsOf } from '#features/policy/recipient-store.ts'
import { lockPolicy, policyStateOf, saveSpend } from '#features/policy/store.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { type Action, intentHash } from '#kernel/task/signer.ts'
import { query } from '#store/query.ts'
import { acceptTask, endUnexecuted } from '../harness/accept-task.ts'
import { eventually } from '../harness/gateway.ts'
import { createIdentityApp, faultOf, type IdentityApp, usdc, vault } from './identity-app.ts'
import { actionOf, intentOf, newTask, reserve as reserveIn, stranger, transfer } from './intents.ts'

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
const personOf = (caller: Caller): Caller => ({
  ...caller,
  scheme: 'oauth',
  person: {
    email: 'ada@example.com',
    grantId: 'grant',
    clientId: 'app',
    oauthScopes: ['manage'],
    hasSignedUp: true,
    signIn: { at: null, ageMaxSeconds: 300 },
  },
})
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

  test('a transfer is not signed while its recipient is being removed', async () => {
    const { userId, own } = await newcomer()
    const now = app.clock.now()
    await insertRecipient(app.db, {
      recipient_id: newTask(app),
      user_id: userId,
      chain_id: '8453',
      address: stranger,
      label: 'Friend',
      agents: 'allowed',
      added_by: 'test',
      created_at: now,
      effective_at: now,
    })
    const [recipient] = await recipientsOf(app.db, userId)
    const sent = { operation: 'wallets_transfer', recipients: [stranger], principal: 'agent' as const }
    const action = await reserve(actionOf(app, userId, sent))
    const intent = intentOf(app, action, own, [transfer(stranger)])
    const spends = [{ token: usdc, amountUnits: 25_000_000n, spender: stranger }]
    const signing = await app.transact(async (tx) => {
      await lockPolicy(tx, userId, now)
      await deleteRecipient(tx, userId, recipient!.recipient_id)
      const code = codeOf(authorize({ ...intent, spends }))
      const isWaiting = async () => {
        const waiting = await query(app.db, `select from pg_locks where not granted`, [])
        return waiting.length > 0 || (await Promise.race([code, undefined])) !== undefined || undefined
      }
      await eventually(isWaiting, 'the signature waits, or is made')
      return { code }
    })
    assert.equal(await signing.code, 'recipient')
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

  test('the switch of the person stops a linked agent at the admission, the acceptance and the signature', async () => {
    const [agent, person] = [await newcomer(), await newcomer()]
    const { userId, own } = agent
    await query(app.db, 'insert into agent_link (user_id, person_id, linked_at) values ($1, $2, now())', [
      userId,
      person.userId,
    ])
    const signable = await reserve(actionOf(app, userId))
    const authorize = (action: Action) =>
      app.transact((tx) => app.policy.policy.authorize(tx, intentOf(app, action, own)))
    await authorize(signable)
    const waiting = await reserve(actionOf(app, userId))
    const admitted = actionOf(app, userId)
    const grant = await app.policy.policy.check(admitted)
    const { since } = await app.ask('policy_kill', { on: true }, person.caller)

    const fault = await faultOf(app.policy.policy.check(actionOf(app, userId)))
    assert.deepEqual([fault.code, fault.extras], ['trading_paused', { scope: 'person', since }])
    // The limits were read before the switch was set.
    let checks = 0
    const check = async () => (checks++ === 0 ? grant : app.policy.policy.check(admitted))
    assert.equal(await codeOf(acceptTask(app, userId, { action: admitted, check })), 'trading_paused')
    assert.equal(checks, 2, 'the accepting transaction refused the grant')
    assert.equal(await codeOf(authorize(waiting)), 'trading_paused')

    const exit = actionOf(app, userId, { exit: true, usdMicros: 0n, recipients: [own, vault] })
    assert.equal(await codeOf(reserve(exit)), 'ok')
    await app.policy.setSwitch({ scope: 'user', userId: person.userId }, false, 'test')
    assert.equal(await codeOf(authorize(waiting)), 'ok')
  })

  test('an agent cannot lift the kill switch; the operator can', async () => {
    const { userId, caller } = await newcomer()
    assert.deepEqual(await app.ask('policy_kill', { on: false }, caller), {
      on: false,
      scope: 'user',
      since: null,
    })
    await app.ask('policy_kill', { on: true }, caller)
    const fault = await faultOf(app.ask('policy_kill', { on: false }, caller))
    assert.equal(fault.code, 'step_up_required')
    assert.equal(fault.extras.requires, 'person')
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
    assert.equal(fault.code, 'step_up_required', 'no person belongs to this agent')
    assert.deepEqual(await app.ask('policy_show', {}, caller), tight)

    assert.equal(await codeOf(reserve(actionOf(app, userId, { chainId: '42161', recipients: [] }))), 'chain')
    assert.equal(await codeOf(reserve(actionOf(app, userId, { tokens: [stranger] }))), 'token')
    assert.equal(await codeOf(reserve(actionOf(app, userId, { usdMicros: dollars(101) }))), 'per_day_usd')
    assert.equal(
      await codeOf(reserve(actionOf(app, userId, { tokens: [usdc.toUpperCase().replace('X', 'x')] }))),
      'ok',
    )
  })

  test('a limit that a person has confirmed waits, and anyone of the account cancels it', async () => {
    const { userId, caller } = await newcomer()
    const person = personOf(caller)
    await app.ask('policy_tighten', { per_day_usd: '100', tokens: [] }, caller)
    const raise = { per_day_usd: '200', per_transaction_usd: '50', tokens: null }
    const asked = await app.confirm('policy_tighten', raise, person)
    assert.deepEqual([asked.per_day_usd, asked.per_transaction_usd, asked.tokens], ['100', '50', []])
    assert.deepEqual(
      asked.pending_changes.map(({ field, per_day_usd, tokens }) => [field, per_day_usd, tokens]),
      [
        ['per_day_usd', '200', undefined],
        ['tokens', undefined, null],
      ],
    )
    const repeated = await app.confirm('policy_tighten', { per_day_usd: '200', tokens: null }, person)
    assert.deepEqual(repeated, asked, 'a repetition waits no longer')
    const [perDay, tokens] = asked.pending_changes
    const cancelled = await app.ask('policy_cancel_change', { change_id: tokens!.change_id }, caller)
    assert.deepEqual(cancelled.pending_changes, [perDay])

    const action = () => actionOf(app, userId, { usdMicros: dollars(40), tokens: [] })
    for (let n = 0; n < 2; n++) assert.equal(await codeOf(reserve(action())), 'ok')
    assert.equal(await codeOf(reserve(action())), 'per_day_usd')
    app.time.offsetMs += 60_001
    const inForce = await app.ask('policy_show', {}, caller)
    assert.deepEqual([inForce.per_day_usd, inForce.tokens, inForce.pending_changes], ['200', [], []])
    assert.equal(await codeOf(reserve(action())), 'ok')
    const late = await faultOf(app.ask('policy_cancel_change', { change_id: perDay!.change_id }, caller))
    assert.equal(late.code, 'not_found')
    const tight = await app.ask('policy_tighten', { per_day_usd: '150' }, caller)
    assert.deepEqual([tight.per_day_usd, tight.pending_changes], ['150', []])
    app.time.offsetMs = 0
  })

  test('a task that was admitted by a raised limit is refused once the raise was cancelled', async () => {
    const { userId, caller } = await newcomer()
    await app.ask('policy_tighten', { per_day_usd: '10' }, caller)
    const { pending_changes: raised } = await app.confirm(
      'policy_tighten',
      { per_day_usd: '100' },
      personOf(caller),
    )
    const ahead = await app.instance()
    ahead.time.offsetMs = 120_000
    const planned = actionOf(app, userId, { usdMicros: dollars(50) })
    const grant = await ahead.policy.policy.check(planned)
    await app.ask('policy_cancel_change', { change_id: raised[0]!.change_id }, caller)
    let checks = 0
    const check = async () => (checks++ === 0 ? grant : app.policy.policy.check(planned))
    assert.equal(
      await codeOf(acceptTask(ahead, userId, { action: planned, check })),
      'per_day_usd',
      'the version of the limits has changed',
    )
  })

  test('nobody raises a limit beyond those of the platform', async () => {
    const { caller } = await newcomer()
    const person = personOf(caller)
    for (const [wanted, type] of [
      [{ per_day_usd: '5000.01' }, 'less_than_equal'],
      [{ recipients: [{ chain_id: '8453', address: stranger }] }, 'not_allowed'],
    ] as const) {
      const fault = await faultOf(app.confirm('policy_tighten', wanted, person))
      assert.deepEqual(
        fault.issues.map((each) => [each.path[0], each.type]),
        [[Object.keys(wanted)[0], type]],
      )
    }
  })

  test('a person who has confirmed it lifts the own kill switch, and a global one stays', async () => {
    const { userId, caller } = await newcomer()
    await app.ask('policy_kill', { on: true }, caller)
    assert.equal(await codeOf(reserve(actionOf(app, userId))), 'trading_paused')
    await app.confirm('policy_kill', { on: false }, personOf(caller))
    assert.equal(await codeOf(reserve(actionOf(app, userId))), 'ok')
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
