/** The second provider of routes between EVM chains, judged by LI.FI's published types and by the chains. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { World } from '#world/world.ts'
import { http } from '../../test/harness/gateway.ts'
import { ownWorld } from '../../test/harness/own-world.ts'
import { type PublishedType, typeErrors } from './lifi/published-types.ts'
import { pollFor } from './solver/solver-world.ts'

/** An account of the node, so that a test needs no key. */
const trader = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
const diamond = '0x1231DEB6f5749EF6cE6943a275A1D3E7486F4EaE'
const native = '0x0000000000000000000000000000000000000000'
const dai = '0x50c5725949a6f0c72e6c4a641f24049a917db0cb'
const wethOnBase = '0x4200000000000000000000000000000000000006'
const usdc = {
  '8453': '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
  '42161': '0xaf88d065e77c8cc2239327c5edb3a432268e5831',
} as const
type ChainKey = keyof typeof usdc

type Quote = {
  message?: string
  code?: number
  transactionId: string
  estimate: { approvalAddress: string; toAmount: string; toAmountMin: string }
  transactionRequest: { to: string; data: string; value: string; gasLimit: string }
}
type Status = {
  status: string
  substatus?: string
  sending?: { txHash: string }
  receiving?: { txHash?: string; amount?: string; token?: { symbol: string }; chainId?: number }
}
type Ask = { from: ChainKey; to: ChainKey; fromToken: string; toToken: string; amount: string }

let world: World
before(async () => {
  world = await ownWorld(['8453', '42161', 'lifi'])
  for (const chain of ['8453', '42161'] as const)
    await toControl('POST', '/faucet/fund', {
      chain_id: chain,
      address: trader,
      token: 'USDC',
      amount: '1000',
    })
})
after(() => world?.[Symbol.asyncDispose]())

async function toControl<B = Record<string, unknown>>(
  method: string,
  path: string,
  body?: unknown,
): Promise<B> {
  const reply = await http<B>(world.urls.control + path, { method, ...(body !== undefined && { body }) })
  assert.equal(reply.status, 200, `${method} ${path}: ${JSON.stringify(reply.body)}`)
  return reply.body
}
const ask = <B>(path: string) => http<B>(world.urls.lifi + path)
const word = (hex: string) => hex.replace('0x', '').toLowerCase().padStart(64, '0')

async function rpc<B>(chain: ChainKey, method: string, params: unknown[]): Promise<B> {
  const { body } = await http<{ result: B; error?: { message: string } }>(world.urls.evm[chain], {
    method: 'POST',
    body: { jsonrpc: '2.0', id: 1, method, params },
  })
  if (body.error) throw new Error(body.error.message)
  return body.result
}
const balanceOf = async (chain: ChainKey, token: string): Promise<bigint> =>
  token === native
    ? BigInt(await rpc<string>(chain, 'eth_getBalance', [trader, 'latest']))
    : BigInt(
        await rpc<string>(chain, 'eth_call', [{ to: token, data: `0x70a08231${word(trader)}` }, 'latest']),
      )

/** Sends from an account that the node holds; the receipt may say that it was reverted. */
async function send(chain: ChainKey, transaction: object): Promise<{ hash: string; isOk: boolean }> {
  const hash = await rpc<string>(chain, 'eth_sendTransaction', [
    { from: trader, gas: '0x1e8480', ...transaction },
  ])
  const receipt = await pollFor('the receipt', async () => {
    const found = await rpc<{ status: string } | null>(chain, 'eth_getTransactionReceipt', [hash])
    return found ?? undefined
  })
  return { hash, isOk: receipt.status === '0x1' }
}

const pathOf = ({ from, to, fromToken, toToken, amount }: Ask, more = '') =>
  `/v1/quote?fromChain=${from}&toChain=${to}&fromToken=${fromToken}&toToken=${toToken}&fromAddress=${trader}&fromAmount=${amount}&slippage=0.005${more}`

const assertPublished = (type: PublishedType, value: unknown) =>
  // JSON has no undefined, and the types name `Date`s nowhere in these answers.
  assert.deepEqual(typeErrors(type, value), [])

async function quoteOf(asked: Ask): Promise<Quote> {
  const { status, body } = await ask<Quote>(pathOf(asked))
  assert.equal(status, 200, JSON.stringify(body))
  assertPublished('Quote', body)
  assert.equal(body.transactionRequest.to, diamond)
  return body
}

/** Approves and sends what the quote says. */
async function execute({ from, fromToken, amount }: Ask, quote: Quote) {
  const { transactionRequest, estimate } = quote
  if (fromToken !== native) {
    const data = `0x095ea7b3${word(estimate.approvalAddress)}${word(BigInt(amount).toString(16))}`
    assert.ok((await send(from, { to: fromToken, data })).isOk)
  }
  const { to, data, value, gasLimit } = transactionRequest
  return send(from, { to, data, value, gas: gasLimit })
}
const statusOf = async (hash: string, more = ''): Promise<Status> => {
  const { status, body } = await ask<Status>(`/v1/status?txHash=${hash}${more}`)
  assert.equal(status, 200, JSON.stringify(body))
  return body
}
const endOf = (hash: string) =>
  pollFor('the end of the transfer', async () => {
    const now = await statusOf(hash)
    return now.status === 'DONE' || now.status === 'FAILED' ? now : undefined
  })

test('chains, tokens and tools have the published form', async () => {
  assertPublished('Chains', (await ask('/v1/chains')).body)
  assertPublished('Tokens', (await ask('/v1/tokens?chains=bas')).body)
  assertPublished('Tools', (await ask('/v1/tools')).body)
})

const swaps: Record<string, [from: string, to: string, amount: string]> = {
  'a token for a token': [usdc['8453'], dai, '25000000'],
  'a token for native coins': [usdc['8453'], native, '25000000'],
  'native coins for a token': [native, usdc['8453'], '10000000000000000'],
  'native coins for wrapped ones': [native, wethOnBase, '10000000000000000'],
}
for (const [what, [fromToken, toToken, amount]] of Object.entries(swaps))
  test(`${what} of the same chain: the receipt has at least the minimum, and the status agrees`, async () => {
    const asked: Ask = { from: '8453', to: '8453', fromToken, toToken, amount }
    const quote = await quoteOf(asked)
    const before = await balanceOf('8453', toToken)
    const { hash, isOk } = await execute(asked, quote)
    assert.ok(isOk)
    const { status, substatus, receiving } = await statusOf(hash, '&fromChain=8453')
    assert.deepEqual([status, substatus, receiving?.txHash], ['DONE', 'COMPLETED', hash])
    assert.ok(BigInt(receiving?.amount ?? 0) >= BigInt(quote.estimate.toAmountMin))
    assertPublished('Status', await statusOf(hash))
    if (toToken === native) return
    assert.equal((await balanceOf('8453', toToken)) - before, BigInt(receiving?.amount ?? 0))
  })

const bridged: Ask = {
  from: '8453',
  to: '42161',
  fromToken: usdc['8453'],
  toToken: usdc['42161'],
  amount: '50000000',
}

test('a bridged token arrives on the other chain, once, with at least the minimum', async () => {
  const quote = await quoteOf(bridged)
  const before = await balanceOf('42161', bridged.toToken)
  const { hash, isOk } = await execute(bridged, quote)
  assert.ok(isOk)
  const done = await endOf(hash)
  assertPublished('Status', done)
  assert.deepEqual([done.status, done.substatus, done.receiving?.chainId], ['DONE', 'COMPLETED', 42161])
  const arrived = (await balanceOf('42161', bridged.toToken)) - before
  assert.equal(arrived, BigInt(done.receiving?.amount ?? 0))
  assert.ok(arrived >= BigInt(quote.estimate.toAmountMin) && arrived <= BigInt(quote.estimate.toAmount))
  assert.equal((await statusOf(quote.transactionId)).status, 'DONE')
})

test('native coins are bridged', async () => {
  const asked: Ask = {
    from: '8453',
    to: '42161',
    fromToken: native,
    toToken: native,
    amount: '10000000000000000',
  }
  const before = await balanceOf('42161', native)
  const { hash } = await execute(asked, await quoteOf(asked))
  const done = await endOf(hash)
  assert.deepEqual([done.status, done.substatus], ['DONE', 'COMPLETED'])
  assert.equal((await balanceOf('42161', native)) - before, BigInt(done.receiving?.amount ?? 0))
})

test('a forced failure is refunded, or ends as failed', async () => {
  await toControl('POST', '/lifi/force', { failReason: 'SLIPPAGE' })
  const before = await balanceOf('8453', bridged.fromToken)
  const refunded = await endOf((await execute(bridged, await quoteOf(bridged))).hash)
  assert.deepEqual([refunded.status, refunded.substatus], ['DONE', 'REFUNDED'])
  assert.deepEqual([refunded.receiving?.chainId, refunded.receiving?.token?.symbol], [8453, 'USDC'])
  // The gas of the refund is taken from it.
  const lost = before - (await balanceOf('8453', bridged.fromToken))
  assert.equal(lost, BigInt(bridged.amount) - BigInt(refunded.receiving?.amount ?? 0))
  await toControl('POST', '/lifi/force', { failReason: 'SLIPPAGE', refundFailReason: 'UNKNOWN' })
  const failed = await endOf((await execute(bridged, await quoteOf(bridged))).hash)
  assert.deepEqual([failed.status, failed.substatus], ['FAILED', 'SLIPPAGE_EXCEEDED'])
})

test('a hash without a transaction is not found, a foreign transaction is invalid, and a reverted one has failed', async () => {
  assert.equal((await statusOf(`0x${'ab'.repeat(32)}`)).status, 'NOT_FOUND')
  const foreign = await send('8453', { to: trader, value: '0x1' })
  assert.equal((await statusOf(foreign.hash)).status, 'INVALID')
  const asked: Ask = { from: '8453', to: '8453', fromToken: usdc['8453'], toToken: dai, amount: '25000000' }
  const { transactionRequest } = await quoteOf(asked)
  const { hash, isOk } = await send('8453', {
    to: transactionRequest.to,
    data: transactionRequest.data,
  })
  assert.equal(isOk, false)
  assert.equal((await statusOf(hash)).status, 'FAILED')
})

test('what cannot be routed or read is rejected with the code of the API', async () => {
  const cases: [path: string, status: number, code: number][] = [
    [pathOf({ ...bridged, toToken: wethOnBase.replace('0x42', '0x82') }), 404, 1002],
    [pathOf({ ...bridged, amount: '9999999999999999' }), 404, 1002],
    [pathOf(bridged, '&allowBridges=stargate'), 404, 1002],
    [pathOf({ ...bridged, amount: '-1' }), 400, 1011],
    [pathOf(bridged).replace('fromChain=8453', 'fromChain=56'), 400, 1011],
    ['/v1/quote', 400, 1011],
    ['/v1/status?txHash=0x12', 400, 1011],
  ]
  for (const [path, status, code] of cases) {
    const reply = await ask<{ message: string; code: number }>(path)
    assert.deepEqual([reply.status, reply.body.code], [status, code], path)
  }
})

test('quotes beyond the limit of two hours are 429 with the time until the next one', async () => {
  await toControl('POST', '/lifi/pricing', { quotesPerTwoHours: 1 })
  const reply = await pollFor('a rejection', async () => {
    const found = await ask<Quote>(pathOf(bridged))
    return found.status === 429 ? found : undefined
  })
  assert.equal(reply.body.code, 1005)
  assert.ok(Number(reply.headers.get('ratelimit-reset')) > 7_000)
  await toControl('POST', '/lifi/pricing', { quotesPerTwoHours: 0 })
})

test('a fill survives a kill at every point, and a status lags behind the chain where that is set', async () => {
  for (const point of ['deposit-stored', 'fill-stored', 'fill-sent']) {
    const before = await balanceOf('42161', bridged.toToken)
    const quote = await quoteOf(bridged)
    await toControl('POST', '/lifi/kill-at', { point })
    const { hash } = await execute(bridged, quote)
    // The process is started by the next request.
    const done = await pollFor('the end after the kill', async () => {
      const now = await ask<Status>(`/v1/status?txHash=${hash}`).catch(() => undefined)
      return now?.body.status === 'DONE' ? now.body : undefined
    })
    assert.equal(done.substatus, 'COMPLETED', point)
    assert.equal(
      (await balanceOf('42161', bridged.toToken)) - before,
      BigInt(done.receiving?.amount ?? 0),
      point,
    )
  }
  await toControl('POST', '/lifi/realism', { statusLag: 1_500 })
  const { hash } = await execute(bridged, await quoteOf(bridged))
  assert.equal((await statusOf(hash)).status, 'PENDING')
  assert.equal((await endOf(hash)).substatus, 'COMPLETED')
})
