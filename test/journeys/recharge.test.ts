/** Credits for the native coin of a chain: paid once, credited once, and nothing that is sent is lost. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, afterEach, before, describe, test } from 'node:test'
import type { SvmInstruction } from '#kernel/signer.ts'
import {
  createTokenAccount,
  memo,
  transferLamports,
  transferTokens,
} from '#upstreams/solana/instruction-builder.ts'
import { compileMessage, joinTransaction } from '#upstreams/solana/message.ts'
import { tokenProgram } from '#upstreams/solana/program-ids.ts'
import { addressOfSecret, signWith } from '#upstreams/solana/sign.ts'
import { operatorOf } from '../harness/admin.ts'
import { dataFolder, eventually, freshGateway, http } from '../harness/gateway.ts'
import { createFundedPerson, type Person, type TaskBody } from './users.ts'
import { base, polygon, solana, type World, worldOf } from './world.ts'

type Refusal = { code: string; detail: unknown; available?: string; reason?: string }
type RechargeResult = {
  pack_id: string
  credits: number
  chain_id: string
  tx_hash: string
  paid: string
  native_price_usd: string
}
type RechargeTask = Omit<TaskBody, 'result'> & {
  result: RechargeResult
  task_ids: string[]
  credits_pending: number
}
type Options = { key?: string; wait?: boolean }

const recharge = <B = RechargeTask>(person: Person, body: object, { key, wait = true }: Options = {}) =>
  person.call<B>(`POST /credits/onchain-recharge?wait=${wait}`, { body, ...(key !== undefined && { key }) })

type Bucket = { kind: string; credits: number; expires_at: string | null }
const purchased = async (person: Person): Promise<number> => {
  const { body } = await person.call<{ buckets: Bucket[] }>('GET /v1/credits')
  return body.buckets.find(({ kind }) => kind === 'purchased')?.credits ?? 0
}
const assertExecuted = ({ status, body }: { status: number; body: RechargeTask }) =>
  assert.deepEqual([status, body.status, body.outcome], [200, 'completed', 'executed'], JSON.stringify(body))

const till = '0x7111000000000000000000000000000000000001'
const solanaTill = 'DZchFr2n6SCURi4pT6zVZ2w7pi4xLtrx6nj5PdhdFYLN'
const solanaUsdc = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'
const someone = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const word = (hex: string) => hex.replaceAll('-', '').padStart(64, '0')
const payData = (taskId: string) => `0x${paySelector}${word(taskId)}`
/** `pay(bytes32)`. */
const paySelector = '8609cad1'

describe('credits for a native coin', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    gateway = await freshGateway({}, { ownWorld: 'prices change' })
    world = await worldOf(gateway.world)
  })
  afterEach(async () => {
    await world.heal()
    await world.price({ symbol: 'ETH', price_usd: '3500', spot_usd: '3500', listed: true, confidence: 0.99 })
  })
  after(() => gateway?.[Symbol.asyncDispose]())

  const solPayer = async (native = '1') => {
    const person = await createFundedPerson(gateway.url)
    await world.fund(solana, person.solana, 'native', native)
    return person
  }
  const payer = async (native = '0.1', chainId = base) => {
    const person = await createFundedPerson(gateway.url)
    await world.fund(chainId, person.evm, 'native', native)
    return person
  }

  for (const [pack, credits, paid] of [
    ['5', 300, 1_428_571_428_571_429n],
    ['10', 650, 2_857_142_857_142_858n],
    ['20', 1400, 5_714_285_714_285_715n],
  ] as const)
    test(`the pack of ${pack} dollars is paid from the wallet and gives ${credits} credits`, async () => {
      const person = await payer()
      const [before, tillBefore] = [await world.nativeOf(person.evm), await world.nativeOf(till)]
      const done = await recharge(person, { chain_id: base, pack_id: pack })
      assertExecuted(done)
      const { result, balance_changes } = done.body
      assert.deepEqual(
        [result.pack_id, result.credits, result.chain_id, result.paid, result.native_price_usd],
        [pack, credits, base, String(paid), '3500'],
      )
      assert.deepEqual(
        balance_changes.map(({ symbol, amount }) => [symbol, amount]),
        [['ETH', String(-paid)]],
      )
      assert.equal(before - (await world.nativeOf(person.evm)), paid)
      assert.equal((await world.nativeOf(till)) - tillBefore, paid)
      assert.equal(await purchased(person), credits)
    })

  test('the chains are listed, and each takes its own coin, named by chain, dollars and token or not', async () => {
    const person = await payer('30', polygon)
    const { body } = await person.call<{
      chains: { chain_id: string; confirmations: number; token: { symbol: string; decimals: number } }[]
    }>('GET /credits/recharge-chains')
    assert.deepEqual(
      body.chains.map(({ chain_id, token: { symbol, decimals } }) => [chain_id, symbol, decimals]),
      [
        ['1', 'ETH', 18],
        ['8453', 'ETH', 18],
        ['42161', 'ETH', 18],
        ['137', 'POL', 18],
        ['7565164', 'SOL', 9],
      ],
    )
    const done = await recharge(person, {
      chain_id: 'polygon',
      amount_usd: '5.00',
      token_address: '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE',
    })
    assertExecuted(done)
    assert.equal(done.body.result.paid, '20000000000000000000')
    assert.equal(await purchased(person), 300)
  })

  for (const [pack, credits, paid] of [
    ['5', 300, 27_777_778n],
    ['10', 650, 55_555_556n],
    ['20', 1400, 111_111_112n],
  ] as const)
    test(`the pack of ${pack} dollars is paid in SOL and gives ${credits} credits`, async () => {
      const person = await solPayer()
      const [before, tillBefore] = [await world.solOf(person.solana), await world.solOf(solanaTill)]
      const done = await recharge(person, { chain_id: solana, pack_id: pack, token_address: 'SOL' })
      assertExecuted(done)
      const { result, balance_changes, task_id } = done.body
      assert.deepEqual(
        [result.pack_id, result.credits, result.chain_id, result.paid, result.native_price_usd],
        [pack, credits, solana, String(paid), '180'],
      )
      assert.deepEqual(
        balance_changes.map(({ symbol, amount }) => [symbol, amount]),
        [['SOL', String(-paid)]],
      )
      assert.deepEqual([done.body.task_ids, done.body.credits_pending], [[task_id], 0])
      assert.equal(before - (await world.solOf(person.solana)), paid)
      assert.equal((await world.solOf(solanaTill)) - tillBefore, paid)
      assert.equal(await purchased(person), credits)
    })

  test('the answer names its task, and the credits that are still to come', async () => {
    const person = await solPayer()
    for (const chainId of [solana, base]) {
      await world.fund(base, person.evm, 'native', '0.1')
      const { body } = await recharge(person, { chain_id: chainId, pack_id: '10' }, { wait: false })
      assert.deepEqual(Object.keys(body).sort(), [
        'credits_pending',
        'idempotency_key',
        'message',
        'poll_url',
        'status',
        'task_id',
        'task_ids',
      ])
      assert.deepEqual([body.task_ids, body.credits_pending], [[body.task_id], 650])
      await person.ended(body.task_id)
    }
    assert.equal(await purchased(person), 1_300)
  })

  test('one key sent 16 times at once pays once in SOL, also where the replies of the node are lost', async () => {
    const person = await solPayer()
    const before = await world.solOf(person.solana)
    await world.fault('solana', { drop_reply: true, methods: ['sendTransaction'], count: 3 })
    const body = { chain_id: 'solana', amount_usd: '10' }
    const all = await Promise.all(
      Array.from({ length: 16 }, () => recharge(person, body, { key: 'sixteen' })),
    )
    for (const each of all) assertExecuted(each)
    assert.equal(new Set(all.map(({ body: { task_id } }) => task_id)).size, 1)
    assert.equal(before - (await world.solOf(person.solana)), 55_555_556n)
    assert.equal(await purchased(person), 650)
  })

  test('a request that cannot succeed makes no task', async () => {
    const person = await payer('0.001')
    const tasks = await person.taskCount()
    const bodies: [object, number, string][] = [
      [{ chain_id: base }, 422, 'exactly_one_of'],
      [{ chain_id: base, pack_id: '5', amount_usd: '5' }, 422, 'exactly_one_of'],
      [{ chain_id: base, pack_id: '7' }, 422, 'unknown_pack'],
      [{ chain_id: base, amount_usd: '6' }, 422, 'unknown_pack'],
      [{ chain_id: '56', pack_id: '5' }, 422, 'unsupported_chain'],
      [{ chain_id: base, pack_id: '5', token_address: world.usdc }, 422, 'unsupported_asset'],
      [{ chain_id: base, pack_id: '5' }, 409, 'insufficient_balance'],
    ]
    for (const [body, status, what] of bodies) {
      const refused = await recharge<Refusal>(person, body)
      assert.equal(refused.status, status, JSON.stringify(refused.body))
      assert.match(JSON.stringify(refused.body), new RegExp(what))
    }
    const short = await recharge<Refusal>(person, { chain_id: base, pack_id: '5' })
    assert.equal(short.body.available, '0.001')
    assert.equal(await person.taskCount(), tasks)
  })

  test('one key sent 64 times at once pays once and credits once', async () => {
    const person = await payer()
    const before = await world.nativeOf(person.evm)
    const body = { chain_id: base, pack_id: '10' }
    const all = await Promise.all(
      Array.from({ length: 64 }, () => recharge(person, body, { key: 'sixty-four' })),
    )
    for (const each of all) assertExecuted(each)
    assert.equal(new Set(all.map(({ body: { task_id } }) => task_id)).size, 1)
    const other = await recharge<Refusal>(person, { ...body, pack_id: '5' }, { key: 'sixty-four' })
    assert.deepEqual([other.status, other.body.code], [409, 'idempotency_conflict'])
    assert.deepEqual((await recharge(person, body, { key: 'sixty-four' })).body, all[0]!.body)
    assert.equal(before - (await world.nativeOf(person.evm)), 2_857_142_857_142_858n)
    assert.equal(await purchased(person), 650)
  })

  test('a payment that the chain loses the reply to is credited once', async () => {
    const person = await payer()
    await world.fault(`evm:${base}`, { drop_reply: true, methods: ['eth_sendRawTransaction'], count: 3 })
    assertExecuted(await recharge(person, { chain_id: base, pack_id: '5' }))
    assert.equal(await purchased(person), 300)
  })

  test('the switch and the limits of the policy apply to payments', async () => {
    const person = await payer()
    const limits = { per_transaction_usd: '9' }
    assert.equal((await person.call('PUT /v1/policy', { body: limits })).status, 200)
    const refused = await recharge<Refusal>(person, { chain_id: base, pack_id: '10' })
    assert.deepEqual([refused.status, refused.body.code], [403, 'policy_denied'])
    assertExecuted(await recharge(person, { chain_id: base, pack_id: '5' }))
  })

  test('without two prices that agree nothing is sold', async () => {
    const person = await payer()
    const ask = async () => (await recharge<Refusal>(person, { chain_id: base, pack_id: '5' })).body.code
    const refusedFor = async (change: object) => {
      await world.price({ symbol: 'ETH', ...change })
      // Prices are fresh for ten seconds.
      await eventually(
        async () => ((await ask()) === 'unavailable' ? true : undefined),
        JSON.stringify(change),
        15_000,
      )
    }
    await refusedFor({ spot_usd: '3536' })
    assert.equal(await purchased(person), 300 * ((await person.taskCount()) - 1))
    await refusedFor({ spot_usd: '3500', confidence: 0.5 })
    await refusedFor({ confidence: 0.99, listed: false })
  })
})

describe('what is sent to the contract and pays no task', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  const folder = dataFolder()
  before(async () => {
    gateway = await freshGateway()
    world = await worldOf(gateway.world)
  })
  after(async () => {
    await gateway?.[Symbol.asyncDispose]()
    folder[Symbol.dispose]()
  })

  type Stray = {
    chain_id: string
    tx_hash: string
    log_index: number
    reason: string
    amount: string
    token: string
  }
  const operator = () => operatorOf({ DATABASE_URL: gateway.databaseUrl, DATA_DIR: folder.path })
  const strays = () => operator().rows<Stray>('credit-payments', 'list')
  const sendFrom = async (from: string, transaction: object): Promise<string> => {
    const hash = (await world.rpc('eth_sendTransaction', [{ from, ...transaction }])) as string
    await eventually(
      async () => (await world.rpc('eth_getTransactionReceipt', [hash])) ?? undefined,
      'the payment is mined',
    )
    return hash.toLowerCase()
  }

  /** A transaction of a key pair that the gateway does not know. */
  async function sendOnSolana(secret: Uint8Array, instructions: SvmInstruction[]): Promise<string> {
    const url = world.manifest.urls.solana
    const { value } = (await world.rpc('getLatestBlockhash', [], url)) as { value: { blockhash: string } }
    const bytes = compileMessage({
      feePayer: addressOfSecret(secret),
      instructions,
      tables: [],
      staticAddresses: [],
      blockhash: value.blockhash,
    })
    const raw = Buffer.from(joinTransaction([signWith(secret, bytes)], bytes)).toString('base64')
    const signature = (await world.rpc('sendTransaction', [raw, { encoding: 'base64' }], url)) as string
    const status = async () => {
      const { value: found } = (await world.rpc('getSignatureStatuses', [[signature]], url)) as {
        value: ({ err: unknown; confirmationStatus: string } | null)[]
      }
      assert.equal(found[0]?.err ?? null, null)
      return found[0] && found[0].confirmationStatus !== 'processed' ? true : undefined
    }
    await eventually(status, 'the transaction is confirmed')
    return signature
  }

  test('on Solana it is listed likewise, in SOL or in a token', async () => {
    const person = await createFundedPerson(gateway.url)
    await world.fund(solana, person.solana, 'native', '1')
    const done = await recharge(person, { chain_id: solana, pack_id: '5' })
    assertExecuted(done)
    const secret = randomBytes(32)
    const stranger = addressOfSecret(secret)
    await world.fund(solana, stranger, 'native', '1')
    await world.fund(solana, stranger, 'USDC', '10')
    const pays = (lamports: string | bigint) => transferLamports(stranger, solanaTill, BigInt(lamports))
    const { task_id, result } = done.body
    const usdc = { mint: solanaUsdc, decimals: 6, tokenProgram }
    const wanted = new Map([
      [await sendOnSolana(secret, [memo(task_id), pays(result.paid)]), 'other_payer'],
      [await sendOnSolana(secret, [memo(crypto.randomUUID()), pays(result.paid)]), 'unknown_task'],
      [await sendOnSolana(secret, [pays(result.paid)]), 'no_task'],
      [
        await sendOnSolana(secret, [
          createTokenAccount(usdc, solanaTill, stranger),
          transferTokens(usdc, stranger, solanaTill, 10_000n),
        ]),
        'token',
      ],
    ])
    const found = await eventually(
      async () => {
        const own = (await strays()).filter(({ tx_hash }) => wanted.has(tx_hash))
        return own.length === wanted.size ? own : undefined
      },
      'every payment is listed',
      120_000,
    )
    assert.deepEqual(new Map(found.map(({ tx_hash, reason }) => [tx_hash, reason])), wanted)
    assert.ok(
      (await strays()).every(({ tx_hash }) => tx_hash !== result.tx_hash),
      'its own payment is none',
    )
    assert.equal(await purchased(person), 300)
    const { chain_id, tx_hash, log_index } = found[0]!
    await operator().act('returned', 'credit-payments', 'resolve', chain_id, tx_hash, String(log_index))
    assert.ok((await strays()).every((each) => each.tx_hash !== tx_hash))
  })

  test('it is listed with its cause, credited to nobody, and ends when an operator has returned it', async () => {
    const person = await createFundedPerson(gateway.url)
    await world.fund(base, person.evm, 'native', '0.1')
    const done = await recharge(person, { chain_id: base, pack_id: '5' })
    assertExecuted(done)
    const { task_id, result } = done.body
    const value = `0x${BigInt(result.paid).toString(16)}`
    const wanted = new Map([
      [await sendFrom(someone, { to: till, value, data: payData(task_id) }), 'other_payer'],
      [await sendFrom(someone, { to: till, value, data: payData(crypto.randomUUID()) }), 'unknown_task'],
      [await sendFrom(someone, { to: till, value }), 'no_task'],
    ])
    await world.fund(base, someone, 'USDC', '1')
    const transferOf = (units: number) => `0xa9059cbb${word(till.slice(2))}${word(units.toString(16))}`
    const dust = [
      await sendFrom(someone, { to: till, value: '0x1' }),
      await sendFrom(someone, { to: world.usdc, data: transferOf(9_999) }),
    ]
    wanted.set(await sendFrom(someone, { to: world.usdc, data: transferOf(10_000) }), 'token')
    // As if the payer's key were used elsewhere, for the same task once more.
    const left = await world.nativeOf(person.evm)
    await world.rpc('anvil_impersonateAccount', [person.evm])
    const again = { to: till, data: payData(task_id) }
    wanted.set(await sendFrom(person.evm, { ...again, value }), 'task_ended')
    wanted.set(
      await sendFrom(person.evm, { ...again, value: `0x${(10n ** 13n).toString(16)}` }),
      'other_amount',
    )
    await world.rpc('anvil_setBalance', [person.evm, `0x${left.toString(16)}`])
    const found = await eventually(
      async () => {
        const own = (await strays()).filter(({ tx_hash }) => wanted.has(tx_hash))
        return own.length === wanted.size ? own : undefined
      },
      'every payment is listed',
      120_000,
    )
    assert.deepEqual(new Map(found.map(({ tx_hash, reason }) => [tx_hash, reason])), wanted)
    assert.ok((await strays()).every(({ tx_hash }) => !dust.includes(tx_hash)))
    assert.equal(await purchased(person), 300)
    const metrics = await http<{ text: string }>(`${gateway.url}/metrics`)
    assert.match(metrics.body.text, /portico_credit_payments_stray\{reason="other_payer"\} [1-9]/)

    const { chain_id, tx_hash, log_index } = found[0]!
    const id = [chain_id, tx_hash, String(log_index)]
    await operator().act('returned by 0xabc', 'credit-payments', 'resolve', ...id)
    assert.ok((await strays()).every((each) => each.tx_hash !== tx_hash))
    const [logged] = await operator().log('--subject', id.join(' '))
    assert.deepEqual([logged?.command, logged?.reason], ['credit-payments resolve', 'returned by 0xabc'])
    assert.match(
      await operator().refusal('credit-payments', 'resolve', ...id, '--why', 'twice'),
      /no such stray/,
    )
  })
})
