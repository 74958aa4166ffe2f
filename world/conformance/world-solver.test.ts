/** The solver between EVM chains, judged by Relay's own client and its published types. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Hex, PrivateKeyAccount } from 'viem'
import { seededRandom } from '#world/injected-failures.ts'
import { bySize, proofSeed } from '../../test/proof/support/seed.ts'
import { type PublishedType, typeErrors } from './solver/published-types.ts'
import { relayClient } from './solver/relay-client.ts'
import {
  type ChainKey,
  depository,
  native,
  pollFor,
  type SolverWorld,
  startSolverWorld,
  usdc,
} from './solver/solver-world.ts'

let world: SolverWorld
let trader: PrivateKeyAccount

before(async () => {
  world = await startSolverWorld(['8453', '42161'])
  trader = await world.newTrader()
})
after(() => world?.[Symbol.asyncDispose]())

const assertPublished = (type: PublishedType, value: unknown) => assert.deepEqual(typeErrors(type, value), [])

const weth = '0x4200000000000000000000000000000000000006'
const dai = '0x50c5725949a6f0c72e6c4a641f24049a917db0cb'
type Trade = { from: string; to: string; chain: ChainKey; amount: string; steps: string[] }
const trades: Record<string, Trade> = {
  'a token for a token of the same chain': {
    from: usdc['8453'],
    to: dai,
    chain: '8453',
    amount: '25000000',
    steps: ['approve', 'swap'],
  },
  'a token for native coins of the same chain': {
    from: usdc['8453'],
    to: native,
    chain: '8453',
    amount: '25000000',
    steps: ['approve', 'swap'],
  },
  'native coins for a token of the same chain': {
    from: native,
    to: usdc['8453'],
    chain: '8453',
    amount: '10000000000000000',
    steps: ['swap'],
  },
  'native coins for wrapped ones': {
    from: native,
    to: weth,
    chain: '8453',
    amount: '10000000000000000',
    steps: ['swap'],
  },
  'a token for a token of another chain': {
    from: usdc['8453'],
    to: usdc['42161'],
    chain: '42161',
    amount: '25000000',
    steps: ['approve', 'deposit'],
  },
  'a token for native coins of another chain': {
    from: usdc['8453'],
    to: native,
    chain: '42161',
    amount: '25000000',
    steps: ['approve', 'deposit'],
  },
  'native coins for a token of another chain': {
    from: native,
    to: usdc['42161'],
    chain: '42161',
    amount: '10000000000000000',
    steps: ['deposit'],
  },
  'native coins for native coins of another chain': {
    from: native,
    to: native,
    chain: '42161',
    amount: '10000000000000000',
    steps: ['deposit'],
  },
}

for (const [name, { from, to, chain, amount, steps }] of Object.entries(trades))
  test(`Relay's client trades ${name}, and the recipient gets at least the minimum`, async () => {
    const client = await relayClient(world.urls.solver, [world.chains['8453'], world.chains['42161']])
    // A wrap pays its sender; all else goes to an account that has nothing.
    const recipient = to === weth ? trader.address : world.newAddress()
    const before = await world.balance(chain, to, recipient)
    const quote = await client.actions.getQuote({
      chainId: 8453,
      toChainId: Number(chain),
      currency: from,
      toCurrency: to,
      amount,
      tradeType: 'EXACT_INPUT',
      user: trader.address,
      recipient,
      options: { refundTo: trader.address },
    })
    assert.deepEqual(
      quote.steps.map(({ id }) => id),
      steps,
    )
    const paidBefore = await world.balance('8453', from, trader.address)
    const wallet = world.walletOn('8453', trader)
    await client.actions.execute({ quote, wallet, onProgress: () => {}, disableCapabilitiesCheck: true })
    const id = quote.steps.at(-1)?.requestId ?? ''
    const { status, inTxHashes, txHashes } = await world.end(id)
    assert.equal(status, 'success')
    assert.equal(inTxHashes.length, 1)
    assert.equal(txHashes.length, 1)
    const received = (await world.balance(chain, to, recipient)) - before
    const { currencyOut } = quote.details
    assert.ok(received >= BigInt(currencyOut.minimumAmount), `${received} of ${currencyOut.minimumAmount}`)
    assert.ok(received <= BigInt(currencyOut.amount))
    const paid = paidBefore - (await world.balance('8453', from, trader.address))
    if (from === native) assert.ok(paid >= BigInt(amount))
    else assert.equal(paid, BigInt(amount))
  })

test('every answer has the form of the published types', async () => {
  const { solver } = world.urls
  const body = {
    user: trader.address,
    originChainId: 8453,
    destinationChainId: 42161,
    originCurrency: usdc['8453'],
    destinationCurrency: native,
    amount: '5000000',
    refundTo: trader.address,
  }
  const quote = await world.quote(body)
  assertPublished('Quote', quote)
  assertPublished('Quote', await world.quote({ ...body, destinationChainId: 8453 }))
  const id = quote.steps.at(-1)?.requestId ?? ''
  assertPublished('Status', await world.statusOf(id))
  await world.sendSteps(trader, quote)
  await world.end(id)
  assertPublished('Status', await world.statusOf(id))
  assertPublished('Requests', await world.expect('GET', `${solver}/requests/v3?id=${id}&includeTotal=true`))
  assertPublished('Chains', await world.expect('GET', `${solver}/chains`))
  const currencies = await world.expect<{ symbol: string }[]>('POST', `${solver}/currencies/v2`, {
    chainIds: [8453],
    term: 'usdc',
  })
  assertPublished('Currencies', currencies)
  assert.deepEqual(
    currencies.map(({ symbol }) => symbol),
    ['USDC'],
  )
  const price = await world.expect<{ price: number }>(
    'GET',
    `${solver}/currencies/token/price?chainId=8453&address=${native}`,
  )
  assertPublished('TokenPrice', price)
  assert.equal(price.price, 3500)
  const refused = await world.quoteError({ ...body, tradeType: 'EXACT_INPUT', amount: '1' })
  assert.equal(refused.status, 400)
  const { status: _, ...error } = refused
  assertPublished('QuoteError', error)
  const notice = { chainId: '8453', txHash: `0x${'1'.repeat(64)}` }
  assertPublished('Notified', await world.expect('POST', `${solver}/transactions/index`, notice))
  const withoutKey = await fetch(`${solver}/requests/v3?id=${id}`)
  assert.equal(withoutKey.status, 401)
})

test('an exact output is paid in full, from a pool and from the inventory', async () => {
  for (const chain of ['8453', '42161'] as const) {
    const recipient = world.newAddress()
    const to = chain === '8453' ? dai : usdc[chain]
    const amount = chain === '8453' ? 10n ** 19n : 10_000_000n
    const quote = await world.quote({
      user: trader.address,
      recipient,
      refundTo: trader.address,
      originChainId: 8453,
      destinationChainId: Number(chain),
      originCurrency: native,
      destinationCurrency: to,
      amount: String(amount),
      tradeType: 'EXACT_OUTPUT',
    })
    await world.sendSteps(trader, quote)
    assert.equal((await world.end(quote.steps.at(-1)?.requestId ?? '')).status, 'success')
    assert.equal(await world.balance(chain, to, recipient), amount)
  }
})

test('a quote is rejected with the code of its reason', async () => {
  const valid = {
    user: trader.address,
    recipient: trader.address,
    originChainId: 8453,
    destinationChainId: 42161,
    originCurrency: usdc['8453'],
    destinationCurrency: usdc['42161'],
    amount: '5000000',
    tradeType: 'EXACT_INPUT',
  }
  const unknownToken = `0x${'12'.repeat(20)}`
  const cases: [Record<string, unknown>, string][] = [
    [{ amount: '0' }, 'AMOUNT_TOO_LOW'],
    [{ amount: '10' }, 'AMOUNT_TOO_LOW'],
    [{ originChainId: 10 }, 'UNSUPPORTED_CHAIN'],
    [{ user: 'somebody' }, 'INVALID_ADDRESS'],
    [{ recipient: 'somebody' }, 'INVALID_RECIPIENT'],
    [{ originCurrency: 'USDC' }, 'INVALID_INPUT_CURRENCY'],
    [{ destinationCurrency: 'USDC' }, 'INVALID_OUTPUT_CURRENCY'],
    [{ destinationCurrency: unknownToken }, 'NO_SWAP_ROUTES_FOUND'],
    [{ slippageTolerance: '10001' }, 'INVALID_SLIPPAGE_TOLERANCE'],
    [{ amount: '9000000000000' }, 'SWAP_IMPACT_TOO_HIGH'],
    [{ amount: '9000000000000', overridePriceImpact: true }, 'INSUFFICIENT_LIQUIDITY'],
    [{ destinationChainId: 8453, destinationCurrency: usdc['8453'] }, 'UNSUPPORTED_ROUTE'],
  ]
  for (const [change, errorCode] of cases) {
    const reply = await world.quoteError({ ...valid, ...change })
    assert.deepEqual([reply.status, reply.errorCode], [400, errorCode], JSON.stringify([change, reply]))
  }
  await world.set('/rules', { disabledChains: [42161], sanctioned: [] })
  assert.equal((await world.quoteError(valid)).errorCode, 'CHAIN_DISABLED')
  await world.set('/rules', { disabledChains: [], sanctioned: [trader.address] })
  assert.equal((await world.quoteError(valid)).errorCode, 'SANCTIONED_WALLET_ADDRESS')
  await world.set('/rules', { sanctioned: [] })
  await world.set('/quote-error', { errorCode: 'PRICE_FETCH_FAILED', status: 500 })
  assert.equal((await world.quoteError(valid)).status, 500)
  await world.quote(valid)
})

test('a swap that nobody announced is found by the number of its request, and a reverted one fails', async () => {
  const body = {
    user: trader.address,
    originChainId: 8453,
    destinationChainId: 8453,
    originCurrency: usdc['8453'],
    destinationCurrency: native,
    amount: '5000000',
  }
  const quote = await world.quote(body)
  const hash = await world.sendSteps(trader, quote)
  const found = await world.end(quote.steps.at(-1)?.requestId ?? '')
  assert.deepEqual([found.status, found.txHashes], ['success', [hash]])
  // Without an approval the router reverts.
  const refused = await world.quote({ ...body, amount: '6000000' })
  const data = refused.steps.at(-1)?.items[0]?.data
  assert.ok(data)
  const wallet = world.walletOn('8453', trader)
  const reverted = await wallet.sendTransaction({ to: data.to, data: data.data, gas: 500_000n })
  await world.clients['8453'].waitForTransactionReceipt({ hash: reverted })
  const failed = await world.end(refused.steps.at(-1)?.requestId ?? '')
  assert.deepEqual([failed.status, failed.details], ['failure', 'TRANSACTION_REVERTED'])
})

test('a swap has gas enough also where its second differs from that of its estimate', async () => {
  const body = {
    user: trader.address,
    recipient: trader.address,
    originChainId: 8453,
    destinationChainId: 8453,
    originCurrency: native,
    destinationCurrency: dai,
    amount: '1000000000000000',
  }
  for (const laterSeconds of [0, 0, 3]) {
    const quote = await world.quote(body)
    const { timestamp } = await world.clients['8453'].getBlock()
    // The estimate of a wallet sees the last block, and the swap is mined in a later second.
    const method = 'evm_setNextBlockTimestamp'
    const params = [Number(timestamp) + laterSeconds]
    if (laterSeconds > 0)
      await world.expect('POST', world.urls.evm['8453'], { jsonrpc: '2.0', id: 1, method, params })
    await world.sendSteps(trader, quote)
    assert.equal((await world.end(quote.steps[0]?.requestId ?? '')).status, 'success')
  }
})

test('an unknown request has no status, and an unused quote waits', async () => {
  assert.equal((await world.statusOf(`0x${'77'.repeat(32)}`)).status, 'unknown')
  const { steps } = await world.quote({
    user: trader.address,
    originChainId: 8453,
    destinationChainId: 42161,
    originCurrency: native,
    destinationCurrency: native,
    amount: '100000000000000000',
  })
  const [step] = steps
  assert.equal((await world.statusOf(step?.requestId ?? '')).status, 'waiting')
  assert.equal(step?.items[0]?.data.to, depository)
  assert.match(step?.items[0]?.check?.endpoint ?? '', /^\/intents\/status\/v3\?requestId=0x/)
})

test('a solver that is killed while it is idle answers again by itself', async () => {
  const body = {
    user: trader.address,
    originChainId: 8453,
    destinationChainId: 42161,
    originCurrency: native,
    destinationCurrency: native,
    amount: '100000000000000000',
  }
  const { steps } = await world.quote(body)
  const id = steps[0]?.requestId as Hex
  await world.toControl('POST', '/chains/solver/kill')
  await assert.rejects(world.statusOf(id))
  await world.toControl('POST', '/chains/solver/start')
  const status = await pollFor('an answer', () => world.statusOf(id).catch(() => undefined))
  assert.equal(status.status, 'waiting')
})

test('random swaps pay at least their minimum, or give everything back', async () => {
  const random = seededRandom(proofSeed('random swaps'))
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  await world.set('/realism', { preset: 'quiet', sponsoredRefunds: true })
  const tokens = { '8453': [native, usdc['8453'], dai], '42161': [native, usdc['42161']] }
  for (let done = 0; done < bySize({ short: 12, full: 60, nightly: 1_000 }); done++) {
    const from = pick([native, usdc['8453']])
    const chain = pick(['8453', '42161'] as const)
    const to = pick(tokens[chain].filter((token) => chain === '42161' || token !== from))
    const dollars = 1 + Math.floor(random() * 20)
    const amount = from === native ? BigInt(dollars) * 10n ** 14n : BigInt(dollars) * 1_000_000n
    const recipient = world.newAddress()
    const quote = await world.quote({
      user: trader.address,
      recipient,
      refundTo: trader.address,
      originChainId: 8453,
      destinationChainId: Number(chain),
      originCurrency: from,
      destinationCurrency: to,
      amount: String(amount),
      slippageTolerance: '30',
    })
    const price = 3_500 + Math.round((random() - 0.5) * 30)
    await world.toControl('POST', '/prices', { symbol: 'ETH', price_usd: String(price) })
    const before = await world.balance('8453', usdc['8453'], trader.address)
    await world.sendSteps(trader, quote)
    const { status } = await world.end(quote.steps.at(-1)?.requestId ?? '')
    const received = await world.balance(chain, to, recipient)
    const what = JSON.stringify({ from, to, chain, dollars, price, status })
    if (status === 'success') assert.ok(received >= BigInt(quote.details.currencyOut.minimumAmount), what)
    else {
      // Nobody else trades at the pools, so a swap on one chain succeeds.
      assert.deepEqual([status, received, chain], ['refund', 0n, '42161'], what)
      assert.equal(await world.balance('8453', usdc['8453'], trader.address), before, what)
    }
  }
})
