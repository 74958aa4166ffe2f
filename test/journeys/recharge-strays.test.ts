/** Payments to the contracts for credits that pay no task: found by a search each minute, and credited to nobody. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import type { SvmInstruction } from '#kernel/task/signer.ts'
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
import { assertExecuted, purchased, recharge } from './recharge-calls.ts'
import { createFundedPerson } from './users.ts'
import { base, solana, type World, worldOf } from './world.ts'

const till = '0x7111000000000000000000000000000000000001'
const solanaTill = 'DZchFr2n6SCURi4pT6zVZ2w7pi4xLtrx6nj5PdhdFYLN'
const solanaUsdc = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'
const someone = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const word = (hex: string) => hex.replaceAll('-', '').padStart(64, '0')
const payData = (taskId: string) => `0x${paySelector}${word(taskId)}`
/** `pay(bytes32)`. */
const paySelector = '8609cad1'

describe('what is sent to the contract and pays no task', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  let database: pg.Pool
  const folder = dataFolder()
  before(async () => {
    gateway = await freshGateway()
    world = await worldOf(gateway.world)
    database = new pg.Pool({ connectionString: gateway.databaseUrl, max: 1 })
  })
  after(async () => {
    await database?.end()
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
  /** A command of the operator is a process: the search is awaited in the database, and listed once. */
  const listed = async (wanted: ReadonlyMap<string, string>): Promise<Stray[]> => {
    const isFound = async () => {
      const { rowCount } = await database.query('select from credit_payment where tx_hash = any($1)', [
        [...wanted.keys()],
      ])
      return rowCount === wanted.size
    }
    await eventually(isFound, 'every payment is found', 120_000)
    return (await strays()).filter(({ tx_hash }) => wanted.has(tx_hash))
  }
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
    const found = await listed(wanted)
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
    const found = await listed(wanted)
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
