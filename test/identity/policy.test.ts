import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import { addSpend, releaseSpend, saveSpend, standingOf } from '#features/policy/store.ts'
import type { Action } from '#kernel/signer.ts'
import { send } from '#store/query.ts'
import { assemble, faultOf, type House, house, usdc, vault } from './house.ts'
import { actionOf, intentOf, newTask, stranger } from './intents.ts'

let it: House
before(async () => {
  it = await house()
})
after(() => it[Symbol.asyncDispose]())

const newcomer = async (from: House = it) => {
  const caller = await from.auth.authenticate(`Bearer ${await from.token(await from.enrol())}`)
  const { wallets } = await from.ask('user_show', {}, caller)
  return { caller, userId: caller.userId, own: wallets[0]?.address ?? '' }
}
const reserve = (action: Action, from: Pick<House, 'policy' | 'transact'> = it) =>
  from.transact((tx) => from.policy.policy.reserve(tx, action))
const codeOf = (answer: Promise<unknown>) =>
  answer.then(
    () => 'ok',
    () => faultOf(answer).then(({ code, extras }) => String(extras.rule ?? code)),
  )
const dollars = (amount: number) => BigInt(amount) * 1_000_000n
const spent = async (userId: string) => {
  const text = `select coalesce(sum(usd_micros), 0) as sum from policy_spend where user_id = $1 and state = 'reserved'`
  return BigInt((await send<{ sum: string }>(it.on, text, [userId]))[0]?.sum ?? 0)
}

describe('caps', () => {
  test('64 reservations at once, on two instances, never exceed the cap of the day', async () => {
    const other = assemble(it.database)
    const { userId } = await newcomer()
    const tries = Array.from({ length: 64 }, (_, turn) =>
      codeOf(reserve(actionOf(it, userId, { usdMicros: dollars(300) }), turn % 2 ? it : other)),
    )
    const codes = await Promise.all(tries)
    assert.equal(codes.filter((code) => code === 'ok').length, 16)
    assert.equal(codes.filter((code) => code === 'per_day_usd').length, 48)
    assert.equal(await spent(userId), dollars(4800))
  })

  test('users do not wait for one another, nor share a cap', async () => {
    const users = await Promise.all(Array.from({ length: 8 }, () => newcomer()))
    const action = (userId: string) => actionOf(it, userId, { usdMicros: dollars(1000) })
    const codes = await Promise.all(users.map(({ userId }) => codeOf(reserve(action(userId)))))
    assert.deepEqual(codes, Array(8).fill('ok'))
  })

  test('what was released counts no more, and what is a day old neither', async () => {
    const { userId } = await newcomer()
    const actions = Array.from({ length: 5 }, () => actionOf(it, userId, { usdMicros: dollars(1000) }))
    for (const action of actions) await reserve(action)
    assert.equal(await codeOf(reserve(actionOf(it, userId))), 'per_day_usd')
    await it.transact((tx) => it.policy.policy.release(tx, (actions[0] as Action).taskId))
    assert.equal(await codeOf(reserve(actionOf(it, userId, { usdMicros: dollars(1000) }))), 'ok')
    assert.equal(await codeOf(reserve(actionOf(it, userId))), 'per_day_usd')
    it.time.offsetMs += 86_401_000
    assert.equal(await codeOf(reserve(actionOf(it, userId))), 'ok')
    it.time.offsetMs = 0
  })

  test('the sums by the minute equal what the rows add up to, at any moment and without any task', async () => {
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
          const userId = newTask(it)
          const begin = Date.UTC(2026, 0, 1)
          const at = (of: { second: number }) => new Date(begin + of.second * 1_000)
          const stored = rows.map((each) => ({ ...each, taskId: newTask(it) }))
          for (const each of stored) {
            await addSpend(it.on, { taskId: each.taskId, userId, usdMicros: each.usdMicros, now: at(each) })
            await saveSpend(it.on, each.taskId, each.usdMicros * 2n, 0n)
            if (each.released) await releaseSpend(it.on, each.taskId)
          }
          for (const ask of asks) {
            const except = stored[ask.except]?.taskId ?? null
            const { spentMicros } = await standingOf(it.on, userId, { since: at(ask), except })
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

  test('the check before a task says the same as the reservation in it', async () => {
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
      const action = actionOf(it, userId, ask)
      assert.equal(await codeOf(it.policy.policy.check(action)), verdicts[at])
      assert.equal(await codeOf(reserve(action)), verdicts[at])
    }
  })

  test('a transaction that fails reserves nothing', async () => {
    const { userId } = await newcomer()
    const failing = it.transact(async (tx) => {
      await it.policy.policy.reserve(tx, actionOf(it, userId))
      throw new Error('no task after all')
    })
    await assert.rejects(failing, /no task after all/)
    assert.equal(await spent(userId), 0n)
  })
})

describe('receipts', () => {
  const authorize = (intent: ReturnType<typeof intentOf>) =>
    it.transact((tx) => it.policy.policy.authorize(tx, intent))

  test('a reserved intent gets a receipt, and the decision is stored with its hash', async () => {
    const { userId, own } = await newcomer()
    const action = actionOf(it, userId)
    await reserve(action)
    const receipt = await authorize(intentOf(it, action, own))
    assert.equal(it.policy.genuine(receipt), true)
    const rows = await send<{ intent_hash: string; rule: string }>(
      it.on,
      'select intent_hash, rule from policy_decision where id = $1 and task_id = $2',
      [receipt.id, action.taskId],
    )
    assert.deepEqual(rows, [{ intent_hash: receipt.intentHash, rule: 'within_limits' }])
  })

  test('without a reservation of this user for this task there is no receipt', async () => {
    const { userId, own } = await newcomer()
    const thief = await newcomer()
    const action = actionOf(it, userId)
    assert.equal(await codeOf(authorize(intentOf(it, action, own))), 'reservation')
    await reserve(action)
    const stolen = { ...action, userId: thief.userId }
    assert.equal(await codeOf(authorize(intentOf(it, stolen, thief.own))), 'reservation')
    assert.equal(
      await codeOf(authorize(intentOf(it, { ...action, taskId: newTask(it) }, own))),
      'reservation',
    )
    await it.transact((tx) => it.policy.policy.release(tx, action.taskId))
    assert.equal(await codeOf(authorize(intentOf(it, action, own))), 'reservation')
  })

  test('the spends of an intent are judged like its tokens and recipients', async () => {
    const { userId, own } = await newcomer()
    const action = actionOf(it, userId)
    await reserve(action)
    const intent = intentOf(it, action, own)
    const spends = [{ token: usdc, amountUnits: 1n, spender: stranger }]
    assert.equal(await codeOf(authorize({ ...intent, spends })), 'recipient')
  })

  test('a switch thrown and a limit lowered between reservation and receipt are obeyed', async () => {
    const { userId, own, caller } = await newcomer()
    const action = actionOf(it, userId)
    await reserve(action)
    await it.policy.setSwitch({ scope: 'global' }, true, 'test')
    assert.equal(await codeOf(authorize(intentOf(it, action, own))), 'trading_paused')
    await it.policy.setSwitch({ scope: 'global' }, false, 'test')
    await it.ask('policy_tighten', { per_transaction_usd: '24.999999' }, caller)
    assert.equal(await codeOf(authorize(intentOf(it, action, own))), 'per_transaction_usd')
  })

  test('a task that signs more than it reserved takes the rest from the cap, or is refused', async () => {
    const { userId, own } = await newcomer()
    const action = actionOf(it, userId, { usdMicros: dollars(1000) })
    await reserve(action)
    const codes: string[] = []
    for (let turn = 0; turn < 7; turn++) codes.push(await codeOf(authorize(intentOf(it, action, own))))
    assert.deepEqual(codes, [...Array(5).fill('ok'), 'per_day_usd', 'per_day_usd'])
    assert.equal(await spent(userId), dollars(5000))
    assert.equal(await codeOf(reserve(actionOf(it, userId, { usdMicros: 1n }))), 'per_day_usd')
  })

  test('64 reservations and receipts at once leave the cap of the day whole', async () => {
    const { userId, own } = await newcomer()
    const run = async () => {
      const action = actionOf(it, userId, { usdMicros: dollars(200) })
      await reserve(action)
      for (let turn = 0; turn < 3; turn++) await authorize(intentOf(it, action, own))
    }
    await Promise.all(Array.from({ length: 64 }, () => codeOf(run())))
    assert.equal(await spent(userId), dollars(5000))
  })
})

describe('switches and limits', () => {
  test('a killed user opens nothing, on any instance, and still gets out', async () => {
    const { userId, own, caller } = await newcomer()
    const other = assemble(it.database)
    const { since } = await it.ask('policy_kill', { on: true, scope: 'user' }, caller)
    assert.equal((await it.ask('policy_kill', { on: true }, caller)).since, since)
    const fault = await faultOf(other.policy.policy.check(actionOf(it, userId)))
    assert.deepEqual([fault.code, fault.extras], ['trading_paused', { scope: 'user', since }])
    assert.equal(await codeOf(reserve(actionOf(it, userId))), 'trading_paused')
    assert.equal((await it.ask('user_show', {}, caller)).policy_summary.paused, true)

    const exit = actionOf(it, userId, { exit: true, usdMicros: 0n, recipients: [own, vault] })
    await reserve(exit)
    const receipt = await it.transact((tx) => it.policy.policy.authorize(tx, intentOf(it, exit, own)))
    assert.equal(it.policy.genuine(receipt), true)
    assert.equal(await codeOf(it.policy.policy.check(actionOf(it, (await newcomer()).userId))), 'ok')
  })

  test('an agent cannot switch itself on again; the operator can', async () => {
    const { userId, caller } = await newcomer()
    assert.deepEqual(await it.ask('policy_kill', { on: false }, caller), {
      on: false,
      scope: 'user',
      since: null,
    })
    await it.ask('policy_kill', { on: true }, caller)
    const fault = await faultOf(it.ask('policy_kill', { on: false }, caller))
    assert.equal(fault.code, 'step_up_required')
    assert.match(fault.extras.intent_sha256 as string, /^[0-9a-f]{64}$/)
    await it.policy.setSwitch({ scope: 'user', userId }, false, 'operator')
    assert.equal(await codeOf(reserve(actionOf(it, userId))), 'ok')
  })

  test('limits can be tightened step by step and never loosened', async () => {
    const { userId, caller } = await newcomer()
    const fresh = await it.ask('policy_show', {}, caller)
    assert.deepEqual(
      [fresh.version, fresh.per_transaction_usd, fresh.per_day_usd, fresh.tokens, fresh.chains],
      [0, '1000', '5000', null, ['8453', '42161']],
    )
    const wanted = { per_day_usd: '100', chains: ['8453'], tokens: [{ chain_id: '8453', address: usdc }] }
    const tight = await it.ask('policy_tighten', wanted, caller)
    assert.deepEqual([tight.version, tight.per_day_usd, tight.per_transaction_usd], [1, '100', '1000'])
    assert.equal((await it.ask('policy_tighten', {}, caller)).version, 1)

    const wider = { per_day_usd: '100.000001', chains: ['8453', '42161'], per_transaction_usd: '1' }
    const fault = await faultOf(it.ask('policy_tighten', wider, caller))
    assert.deepEqual([fault.code, fault.extras.fields], ['step_up_required', ['per_day_usd', 'chains']])
    assert.deepEqual(await it.ask('policy_show', {}, caller), tight)

    assert.equal(await codeOf(reserve(actionOf(it, userId, { chainId: '42161', recipients: [] }))), 'chain')
    assert.equal(await codeOf(reserve(actionOf(it, userId, { tokens: [stranger] }))), 'token')
    assert.equal(await codeOf(reserve(actionOf(it, userId, { usdMicros: dollars(101) }))), 'per_day_usd')
    assert.equal(
      await codeOf(reserve(actionOf(it, userId, { tokens: [usdc.toUpperCase().replace('X', 'x')] }))),
      'ok',
    )
  })

  test('lists take addresses on chains that are served, a hundred at most and each once', async () => {
    const { caller } = await newcomer()
    const place = { chain_id: '8453', address: usdc }
    const other = { chain_id: '8453', address: stranger }
    const { tokens } = await it.ask('policy_tighten', { tokens: [place, place, other, place] }, caller)
    assert.equal((tokens as unknown[]).length, 2)
    const foreign = await faultOf(
      it.ask('policy_tighten', { recipients: [place, { ...place, chain_id: '31337' }] }, caller),
    )
    assert.equal(foreign.code, 'validation')
    assert.deepEqual(
      foreign.issues.map(({ loc, type }) => [loc, type]),
      [[['body', 'recipients', 1, 'chain_id'], 'chain_not_served']],
    )
  })

  test('of many who tighten at once the strictest is what remains', async () => {
    const { caller } = await newcomer()
    const asks = Array.from({ length: 20 }, (_, at) =>
      it.ask('policy_tighten', { per_day_usd: String(20 - at) }, caller),
    )
    await Promise.allSettled(asks)
    assert.equal((await it.ask('policy_show', {}, caller)).per_day_usd, '1')
  })
})
