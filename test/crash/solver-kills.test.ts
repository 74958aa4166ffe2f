/** The local solver, killed at each step of a fill and of a refund: every deposit ends once. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Connection, Keypair, PublicKey } from '@solana/web3.js'
import type { PrivateKeyAccount } from 'viem'
import { confirmed, sendStep } from '../../world/conformance/solver/solana-wallet.ts'
import {
  pollFor,
  type QuoteReply,
  type SolverWorld,
  solanaChain,
  startSolverWorld,
  usdc,
} from '../../world/conformance/solver/solver-world.ts'
import { bySize } from '../proof/support/seed.ts'

let world: SolverWorld
let trader: PrivateKeyAccount

before(async () => {
  world = await startSolverWorld(['8453', '42161', 'solana'])
  trader = await world.newTrader()
})
after(() => world?.[Symbol.asyncDispose]())

const steps = ['signed', 'stored', 'sent', 'mined']
const all = [
  'deposit-seen',
  'deposit-stored',
  ...steps.map((step) => `fill-${step}`),
  ...steps.map((step) => `refund-${step}`),
]
const points = bySize({ short: ['deposit-stored', 'fill-sent', 'refund-stored'], full: all, nightly: all })

const quoteFor = (change: Record<string, unknown>): Promise<QuoteReply> =>
  pollFor('a quote', () =>
    world
      .quote({
        user: trader.address,
        refundTo: trader.address,
        originChainId: 8453,
        originCurrency: usdc['8453'],
        amount: '5000000',
        ...change,
      })
      .catch(() => undefined),
  )

const running = async (): Promise<boolean> =>
  (await world.toControl<{ running: Record<string, boolean> }>('GET', '/')).running.solver === true

/** Arms the kill, sends the deposit, and waits until the solver died and came back. */
const dieAt = async (point: string, quote: QuoteReply): Promise<void> => {
  await world.set('/kill-at', { point })
  await world.sendSteps(trader, quote)
  await pollFor(`the death at ${point}`, async () => ((await running()) ? undefined : true))
  await pollFor('the return', async () => ((await running()) ? true : undefined))
}

const idOf = (quote: QuoteReply): string => quote.steps.at(-1)?.requestId ?? ''
const inventoryNonce = async (chain: '8453' | '42161'): Promise<number> => {
  const { chains } = await world.expect<{ chains: { id: number; solverAddresses: [`0x${string}`] }[] }>(
    'GET',
    `${world.urls.solver}/chains`,
  )
  const wallet = chains.find(({ id }) => String(id) === chain)?.solverAddresses[0]
  return world.clients[chain].getTransactionCount({ address: wallet ?? '0x' })
}

for (const point of points)
  test(`a solver killed at ${point} pays each deposit once, on an EVM chain`, async () => {
    const isRefund = point.startsWith('refund')
    const recipient = world.newAddress()
    const referrer = isRefund ? { referrer: 'debug-force-refund' } : {}
    const quote = await quoteFor({
      recipient,
      destinationChainId: 42161,
      destinationCurrency: usdc['42161'],
      ...referrer,
    })
    const chain = isRefund ? '8453' : '42161'
    const [before, nonce] = [
      await world.balance('8453', usdc['8453'], trader.address),
      await inventoryNonce(chain),
    ]
    await dieAt(point, quote)
    assert.equal((await world.end(idOf(quote))).status, isRefund ? 'refund' : 'success')
    const received = await world.balance('42161', usdc['42161'], recipient)
    assert.equal(received, isRefund ? 0n : BigInt(quote.details.currencyOut.amount))
    const paid = before - (await world.balance('8453', usdc['8453'], trader.address))
    // A refund is smaller by its gas.
    assert.equal(paid, isRefund ? 10_000n : 5_000_000n)
    assert.equal(await inventoryNonce(chain), nonce + 1)
  })

for (const point of points.filter((each) => !each.startsWith('refund')))
  test(`a solver killed at ${point} pays each deposit once, on Solana`, async () => {
    const recipient = Keypair.generate().publicKey.toBase58()
    const sol = '11111111111111111111111111111111'
    const quote = await quoteFor({ recipient, destinationChainId: solanaChain, destinationCurrency: sol })
    await dieAt(point, quote)
    const { status, txHashes } = await world.end(idOf(quote))
    assert.deepEqual([status, txHashes.length], ['success', 1])
    const connection = new Connection(world.urls.solana, 'confirmed')
    const received = await connection.getBalance(new PublicKey(recipient), 'confirmed')
    assert.equal(BigInt(received), BigInt(quote.details.currencyOut.amount))
  })

test('a solver killed while it refunds on Solana pays back once', async () => {
  const connection = new Connection(world.urls.solana, 'confirmed')
  const owner = Keypair.generate()
  const user = owner.publicKey.toBase58()
  await world.fund('7565164', user, 'native', '1')
  for (const point of points.filter((each) => each.startsWith('refund') || each.startsWith('deposit'))) {
    const before = await connection.getBalance(owner.publicKey, 'confirmed')
    const quote = await quoteFor({
      user,
      refundTo: user,
      recipient: trader.address,
      originChainId: solanaChain,
      originCurrency: '11111111111111111111111111111111',
      destinationChainId: 8453,
      destinationCurrency: usdc['8453'],
      amount: '100000000',
      referrer: 'debug-force-refund',
    })
    const data = quote.steps[0]?.items[0]?.data
    assert.ok(data)
    await world.set('/kill-at', { point })
    await confirmed(connection, await sendStep(connection, owner, data))
    await pollFor(`the death at ${point}`, async () => ((await running()) ? undefined : true))
    assert.equal((await world.end(idOf(quote))).status, 'refund')
    const lost = before - (await connection.getBalance(owner.publicKey, 'confirmed'))
    assert.ok(lost > 0 && lost < 100_000, `${lost} lamports of fee and gas at ${point}`)
  }
})

test('a solver killed again and again fills as many deposits as there were', async () => {
  const recipient = world.newAddress()
  const count = bySize({ short: 6, full: 20, nightly: 60 })
  const quotes: QuoteReply[] = []
  const nonce = await inventoryNonce('42161')
  for (let made = 0; made < count; made++)
    quotes.push(await quoteFor({ recipient, destinationChainId: 42161, destinationCurrency: usdc['42161'] }))
  for (const [index, quote] of quotes.entries()) {
    await world.sendSteps(trader, quote)
    if (index % 2 === 1) continue
    await world.toControl('POST', '/chains/solver/kill')
    await world.toControl('POST', '/chains/solver/start')
  }
  for (const quote of quotes) assert.equal((await world.end(idOf(quote))).status, 'success')
  const quoted = quotes.reduce((sum, { details }) => sum + BigInt(details.currencyOut.amount), 0n)
  assert.equal(await world.balance('42161', usdc['42161'], recipient), quoted)
  assert.equal(await inventoryNonce('42161'), nonce + count)
})
