import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { EvmChainRow } from '#kernel/money/chains.ts'
import type { ProposedRoute, SwapProvider } from '#kernel/money/swap-provider.ts'
import type { DecodedCall, EvmCall } from '#kernel/task/signer.ts'
import type { SwapDeps } from './deps.ts'
import { createSwapExecution } from './order-swaps.ts'

const own = `0x${'a1'.repeat(20)}`
const stranger = `0x${'bb'.repeat(20)}`
const router = `0x${'d1'.repeat(20)}`
const tokenOf = (symbol: string, byte: string) => ({
  symbol,
  name: symbol,
  decimals: 6,
  address: `0x${byte.repeat(20)}`,
})
const [usdc, dai] = [tokenOf('USDC', 'c5'), tokenOf('DAI', 'c6')]
const chain = {
  id: '8453',
  family: 'evm',
  llamaSlug: 'base',
  native: { ...tokenOf('ETH', 'ee'), priceId: 'x' },
  usdc: usdc.address,
  swaps: { wrapped: `0x${'e1'.repeat(20)}`, routers: [router] },
} as unknown as EvmChainRow
const amountInUnits = 100_000_000n

/** A provider that quotes so many dollars for a hundred, by a call that pays this account. */
function offering(name: string, dollars: bigint, recipient = own): SwapProvider {
  const units = dollars * 1_000_000n
  const call = { kind: 'swap' as const, to: router, value: 0n, data: `${recipient} ${units}` }
  const end = (address: string) => ({ chainId: chain.id, token: address })
  const route: ProposedRoute = {
    provider: name,
    providerRequestId: '0x1',
    depositId: '0x1',
    origin: end(dai.address),
    destination: end(usdc.address),
    recipient: own,
    amountInUnits,
    amountOutUnits: units,
    amountOutMinUnits: units,
    fees: [],
    legs: [],
    priceImpactBps: 0,
    etaSeconds: 1,
    expiresAt: new Date(0),
    steps: { family: 'evm', chainId: chain.id, calls: [call], gas: null },
    settledBy: 'receipt',
  }
  const notAsked = () => Promise.reject(new Error('not asked'))
  return { name, quote: async () => route, status: notAsked, requestOf: notAsked }
}

const decode = ({ data }: EvmCall): DecodedCall => {
  const [recipient = '', units = '0'] = data.split(' ')
  const amountOutMinUnits = BigInt(units)
  const path = [dai.address, usdc.address]
  const [tokenIn, tokenOut] = [dai.address, usdc.address]
  return { name: 'swap', router, tokenIn, tokenOut, path, amountInUnits, amountOutMinUnits, recipient }
}

/** The dollars that an order counts with for a hundred of a token that is worth one dollar. */
async function quotedDollars(...providers: SwapProvider[]): Promise<bigint> {
  const unused = { driver: () => ({}) }
  const deps = {
    providers,
    batches: unused,
    svm: unused,
    calls: {
      decode,
      withMinimum: (call: EvmCall) => call,
      approve: (to: string, spender: string): EvmCall => ({ to, value: 0n, data: spender }),
    },
    walletsOf: async () => [{ kind: 'evm', address: own }],
    prices: {
      get: async (keys: string[]) => new Map(keys.map((key) => [key, { price: '1', at: new Date(0) }])),
    },
  } as unknown as SwapDeps
  const trade = { origin: { chain, token: dai }, destination: { chain, token: usdc }, amountInUnits }
  return (await createSwapExecution(deps).quoteOut(trade, 'user')) / 1_000_000n
}

test('an order counts with the better of two honest quotes', async () => {
  assert.equal(await quotedDollars(offering('one', 97n), offering('other', 99n)), 99n)
})

test('a quote that no swap would sign decides nothing of an order', async () => {
  assert.equal(await quotedDollars(offering('hostile', 105n, stranger), offering('other', 99n)), 99n)
  await assert.rejects(
    quotedDollars(offering('hostile', 105n, stranger)),
    (fault) => fault instanceof Fault && fault.code === 'upstream_changed',
  )
})

test('a quote far above the displayed price decides nothing of an order where another one is there', async () => {
  assert.equal(await quotedDollars(offering('lying', 150n), offering('other', 99n)), 99n)
})
