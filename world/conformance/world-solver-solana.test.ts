/** The solver from and to Solana, judged by Relay's own client. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { getAssociatedTokenAddressSync } from '@solana/spl-token'
import { Connection, Keypair, PublicKey } from '@solana/web3.js'
import type { PrivateKeyAccount } from 'viem'
import { typeErrors } from './solver/published-types.ts'
import { relayClient } from './solver/relay-client.ts'
import { adaptedWallet, compileStep, confirmed, sendStep } from './solver/solana-wallet.ts'
import {
  native as evmNative,
  usdc as evmUsdc,
  pollFor,
  type SolverWorld,
  solanaChain,
  startSolverWorld,
} from './solver/solver-world.ts'

const sol = '11111111111111111111111111111111'
const usdc = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'
const worldSolana = '7565164'

let world: SolverWorld
let connection: Connection
let trader: PrivateKeyAccount
let holder: Keypair

before(async () => {
  world = await startSolverWorld(['8453', 'solana'])
  connection = new Connection(world.urls.solana, 'confirmed')
  trader = await world.newTrader()
  holder = Keypair.generate()
  await world.fund(worldSolana, holder.publicKey.toBase58(), 'native', '20')
  await world.fund(worldSolana, holder.publicKey.toBase58(), 'USDC', '5000')
})
after(() => world?.[Symbol.asyncDispose]())

const solanaUnits = async (token: string, owner: string): Promise<bigint> => {
  if (token === sol) return BigInt(await connection.getBalance(new PublicKey(owner), 'confirmed'))
  const { value } = await connection.getParsedTokenAccountsByOwner(
    new PublicKey(owner),
    { mint: new PublicKey(token) },
    'confirmed',
  )
  return value.reduce((sum, { account }) => sum + BigInt(account.data.parsed.info.tokenAmount.amount), 0n)
}

const balance = (chainId: number, token: string, owner: string): Promise<bigint> =>
  chainId === solanaChain ? solanaUnits(token, owner) : world.balance('8453', token, owner)

const relayChain = { id: solanaChain, name: 'solana', displayName: 'Solana', vmType: 'svm' }
const amounts: Record<string, string> = {
  [sol]: '100000000',
  [usdc]: '20000000',
  [evmNative]: '5000000000000000',
  [evmUsdc['8453']]: '20000000',
}
const trades: [string, [number, string], [number, string]][] = [
  ['SOL for a token of Solana', [solanaChain, sol], [solanaChain, usdc]],
  ['a token of Solana for SOL', [solanaChain, usdc], [solanaChain, sol]],
  ['SOL for EVM coins', [solanaChain, sol], [8453, evmNative]],
  ['SOL for an EVM token', [solanaChain, sol], [8453, evmUsdc['8453']]],
  ['a token of Solana for EVM coins', [solanaChain, usdc], [8453, evmNative]],
  ['a token of Solana for an EVM token', [solanaChain, usdc], [8453, evmUsdc['8453']]],
  ['EVM coins for SOL', [8453, evmNative], [solanaChain, sol]],
  ['EVM coins for a token of Solana', [8453, evmNative], [solanaChain, usdc]],
  ['an EVM token for SOL', [8453, evmUsdc['8453']], [solanaChain, sol]],
  ['an EVM token for a token of Solana', [8453, evmUsdc['8453']], [solanaChain, usdc]],
]

for (const [name, [fromChain, from], [toChain, to]] of trades)
  test(`Relay's client trades ${name}, for a recipient that has nothing`, async () => {
    const client = await relayClient(world.urls.solver, [world.chains['8453']], [relayChain])
    const recipient = toChain === solanaChain ? Keypair.generate().publicKey.toBase58() : world.newAddress()
    const user = fromChain === solanaChain ? holder.publicKey.toBase58() : trader.address
    const quote = await client.actions.getQuote({
      chainId: fromChain,
      toChainId: toChain,
      currency: from,
      toCurrency: to,
      amount: amounts[from],
      tradeType: 'EXACT_INPUT',
      user,
      recipient,
      options: { refundTo: user },
    })
    // The client adds its own request to the answer.
    const answer = JSON.parse(JSON.stringify({ ...quote, request: undefined }))
    assert.deepEqual(typeErrors('Quote', answer), [])
    const wallet =
      fromChain === solanaChain ? adaptedWallet(connection, holder) : world.walletOn('8453', trader)
    await client.actions.execute({ quote, wallet, onProgress: () => {}, disableCapabilitiesCheck: true })
    const id = quote.steps.at(-1)?.requestId ?? ''
    const ended = await world.end(id)
    assert.equal(ended.status, 'success')
    const received = await balance(toChain, to, recipient)
    assert.equal(received, BigInt(quote.details.currencyOut.amount))
  })

const quoteFrom = (token: string, change: Record<string, unknown> = {}) =>
  world.quote({
    user: holder.publicKey.toBase58(),
    recipient: trader.address,
    refundTo: holder.publicKey.toBase58(),
    originChainId: solanaChain,
    destinationChainId: 8453,
    originCurrency: token,
    destinationCurrency: evmUsdc['8453'],
    amount: amounts[token],
    ...change,
  })

test('a lookup table makes the transaction of a deposit smaller', async () => {
  const { steps } = await quoteFrom(usdc)
  const data = steps[0]?.items[0]?.data
  assert.ok(data?.addressLookupTableAddresses?.length === 1)
  const plain = await compileStep(connection, { ...data, addressLookupTableAddresses: [] }, holder.publicKey)
  const small = await compileStep(connection, data, holder.publicKey)
  assert.ok(small.serialize().length < plain.serialize().length)
  assert.equal(small.message.addressTableLookups.length, 1)
})

test('an owner without SOL deposits a token when somebody else pays the fee', async () => {
  const owner = Keypair.generate()
  await world.fund(worldSolana, owner.publicKey.toBase58(), 'USDC', '50')
  const user = owner.publicKey.toBase58()
  const quote = await quoteFrom(usdc, { user, refundTo: user, recipient: world.newAddress() })
  const data = quote.steps[0]?.items[0]?.data
  assert.ok(data)
  await confirmed(connection, await sendStep(connection, owner, data, holder))
  assert.equal((await world.end(quote.steps[0]?.requestId ?? '')).status, 'success')
  assert.equal(await solanaUnits(sol, user), 0n)
})

test('a second deposit on Solana for the same order is refunded to its sender', async () => {
  await world.set('/realism', { sponsoredRefunds: true })
  const quote = await quoteFrom(usdc)
  const data = quote.steps[0]?.items[0]?.data
  const id = quote.steps[0]?.requestId ?? ''
  assert.ok(data)
  const before = await solanaUnits(usdc, holder.publicKey.toBase58())
  await confirmed(connection, await sendStep(connection, holder, data))
  const second = await sendStep(connection, holder, data)
  await confirmed(connection, second)
  assert.equal((await world.end(id)).status, 'success')
  const child = await pollFor('the child', async () => (await world.requestsOf(`depositTxHash=${second}`))[0])
  assert.equal((await world.end(child.id)).status, 'refund')
  assert.equal((await world.requestOf(child.id)).data.failReason, 'DOUBLE_SPEND')
  const after = await solanaUnits(usdc, holder.publicKey.toBase58())
  assert.equal(before - after, BigInt(amounts[usdc] ?? 0))
})

test('a refund on Solana can be smaller than the deposit, and none is made when its gas costs more', async () => {
  await world.set('/realism', { sponsoredRefunds: false })
  await world.set('/force', { failReason: 'SWAP_IMPACT_TOO_HIGH' })
  const quote = await quoteFrom(sol)
  const before = await solanaUnits(sol, holder.publicKey.toBase58())
  const data = quote.steps[0]?.items[0]?.data
  assert.ok(data)
  await confirmed(connection, await sendStep(connection, holder, data))
  const id = quote.steps[0]?.requestId ?? ''
  assert.equal((await world.end(id)).status, 'refund')
  assert.equal((await world.requestOf(id)).data.failReason, 'SWAP_IMPACT_TOO_HIGH')
  const lost = before - (await solanaUnits(sol, holder.publicKey.toBase58()))
  assert.ok(lost > 0n && lost < 100_000n, `${lost} lamports of fee and gas`)

  // Worth less than the gas of a refund, and of another amount than quoted.
  const { steps } = await quoteFrom(usdc)
  const [deposit, ...others] = steps[0]?.items[0]?.data.instructions ?? []
  assert.ok(deposit && others.length === 0)
  const tiny = Buffer.from(deposit.data, 'hex')
  tiny.writeBigUInt64LE(1_000n, 8)
  const instructions = [{ ...deposit, data: tiny.toString('hex') }]
  await confirmed(connection, await sendStep(connection, holder, { instructions }))
  const short = steps[0]?.requestId ?? ''
  assert.equal((await world.end(short)).status, 'failure')
  const { data: reasons } = await world.requestOf(short)
  assert.equal(reasons.failReason, 'DEPOSITED_AMOUNT_TOO_LOW_TO_FILL')
  assert.equal(reasons.refundFailReason, 'AMOUNT_TOO_LOW_TO_REFUND')
})

test('the instruction of a deposit is what the real service answers with', async () => {
  const owner = holder.publicKey.toBase58()
  const account = (address: string, isSigner = false, isWritable = false) => ({
    pubkey: address,
    isSigner,
    isWritable,
  })
  const program = '99vQwtBwYtrqqD9YSXbdum3KBdxPAVxYTaQ3cfnJSrN2'
  const state = account('Dodg2HifwU8rmaVVyMyUZDGTRbqAJTyVYxXPwcbNpBKc')
  const vault = '7uTT8Xi5RWXzy7h9XL244GRgEycDYDhLjr3ZyNdXi8pZ'
  const answers: [string, string, ReturnType<typeof account>[]][] = [
    [sol, '0d9e0ddf5fd51c0600e1f50500000000', [account(vault, false, true), account(sol)]],
    [
      usdc,
      '0b9c60da27a3b413002d310100000000',
      [
        account(vault),
        account(usdc),
        account(getAssociatedTokenAddressSync(new PublicKey(usdc), holder.publicKey).toBase58(), false, true),
        account('4nvJ5zWdVspxJiNZzB127U6amPH98SFFkBx2JZrAduia', false, true),
        account('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'),
        account('ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL'),
        account(sol),
      ],
    ],
  ]
  for (const [token, data, rest] of answers) {
    const { steps, protocol } = await quoteFrom(token)
    const { orderId = '', paymentDetails } = protocol?.v2 ?? {}
    assert.deepEqual(steps[0]?.items[0]?.data.instructions, [
      {
        keys: [state, account(owner, true, true), account(owner), ...rest],
        programId: program,
        data: data + orderId.slice(2),
      },
    ])
    assert.notEqual(orderId, steps[0]?.requestId)
    assert.deepEqual(paymentDetails, {
      chainId: 'solana',
      depository: program,
      currency: token,
      amount: amounts[token],
    })
  }
})

test('the program refuses another vault, and a deposit without the signature of its sender', async () => {
  const data = (await quoteFrom(usdc)).steps[0]?.items[0]?.data
  const [deposit] = data?.instructions ?? []
  assert.ok(deposit)
  const changed = (at: number, pubkey: string) => ({
    instructions: [
      { ...deposit, keys: deposit.keys.map((each, index) => (index === at ? { ...each, pubkey } : each)) },
    ],
  })
  const own = deposit.keys[5]?.pubkey ?? ''
  for (const [at, address] of [
    [0, holder.publicKey.toBase58()],
    [3, holder.publicKey.toBase58()],
    [5, deposit.keys[6]?.pubkey ?? ''],
    [6, own],
  ] as const)
    await assert.rejects(sendStep(connection, holder, changed(at, address)), /custom program error/)
  const unsigned = deposit.keys.map((each, index) => (index === 1 ? { ...each, isSigner: false } : each))
  const other = Keypair.generate()
  await world.fund(worldSolana, other.publicKey.toBase58(), 'native', '1')
  await assert.rejects(
    sendStep(connection, other, { instructions: [{ ...deposit, keys: unsigned }] }),
    /custom program error: 0xbc2/,
  )
})

test('deposits by a transfer and a memo are taken as well', async () => {
  await world.set('/realism', { solanaDeposits: 'transfer' })
  try {
    for (const token of [sol, usdc]) {
      const recipient = world.newAddress()
      const { steps, protocol, details } = await quoteFrom(token, { recipient })
      assert.equal(protocol, undefined)
      const data = steps[0]?.items[0]?.data
      assert.ok(data?.instructions?.length === 2)
      await confirmed(connection, await sendStep(connection, holder, data))
      assert.equal((await world.end(steps[0]?.requestId ?? '')).status, 'success')
      assert.equal(await balance(8453, evmUsdc['8453'], recipient), BigInt(details.currencyOut.amount))
    }
  } finally {
    await world.set('/realism', { solanaDeposits: 'program' })
  }
})
