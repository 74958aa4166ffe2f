import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as immediate } from 'node:timers/promises'
import { Fault, type FaultCode, invalid } from '#kernel/contract/fault.ts'
import type { ProposedRoute, RouteRequest, SwapProvider } from '#kernel/money/swap-provider.ts'
import { bestQuote } from './best-route.ts'

const request = {} as RouteRequest
const safe = { family: 'evm' as const, calls: [], spends: [] }
const never = new Promise<never>(() => {})
const route = (provider: string, units: bigint) =>
  ({ provider, amountOutUnits: units, amountOutMinUnits: units }) as ProposedRoute
const provider = (name: string, quote: SwapProvider['quote']): SwapProvider => ({
  name,
  quote,
  status: () => never,
  requestOf: () => never,
})
const offering = (name: string, units: bigint) => provider(name, async () => route(name, units))
const failing = (name: string, code: FaultCode) =>
  provider(name, async () => {
    throw new Fault(code, name)
  })
const silent = provider('silent', () => never)
type Chosen = { refused?: string[]; worth?: bigint }
const chosen = async (providers: SwapProvider[], { refused = [], worth }: Chosen = {}) => {
  const safeOf = (each: ProposedRoute) => {
    if (refused.includes(each.provider)) throw new Fault('upstream_changed', each.provider)
    return { ...safe, target: each.provider }
  }
  const trust = { safeOf, worthUnits: Promise.resolve(worth ?? null), graceMs: 20 }
  const best = await bestQuote(providers, request, trust)
  assert.equal(best.safe.target, best.route.provider)
  return best.route.provider
}
const codeOf = async (...providers: SwapProvider[]) =>
  chosen(providers).then(
    () => assert.fail('a route was found'),
    (fault: Fault) => fault.code,
  )

test('the higher minimum wins, and the first provider where they are equal', async () => {
  assert.equal(await chosen([offering('one', 10n), offering('other', 11n)]), 'other')
  assert.equal(await chosen([offering('one', 11n), offering('other', 10n)]), 'one')
  assert.equal(await chosen([offering('one', 1n), offering('other', 1n)]), 'one')
})

test('a quote that promises far more than the input is worth is taken last', async () => {
  const worth = 100n
  const modest = offering('modest', 98n)
  const close = offering('close', 110n)
  const lying = offering('lying', 111n)
  assert.equal(await chosen([lying, modest], { worth }), 'modest')
  assert.equal(await chosen([modest, lying], { worth }), 'modest')
  assert.equal(await chosen([close, modest], { worth }), 'close')
  assert.equal(await chosen([lying], { worth }), 'lying')
  assert.equal(await chosen([offering('worst', 500n), offering('least', 200n)], { worth }), 'least')
  assert.equal(await chosen([offering('half', 50n), close], { worth }), 'close')
})

test('two providers that agree are right where the displayed price is old', async () => {
  const offers = [offering('one', 200n), offering('other', 210n)]
  assert.equal(await chosen(offers, { worth: 100n }), 'other')
})

test('where nothing is known of the worth, a quote far above the other one is taken last', async () => {
  assert.equal(await chosen([offering('one', 151n), offering('other', 100n)]), 'other')
  assert.equal(await chosen([offering('one', 150n), offering('other', 100n)]), 'one')
})

test('a quote that promises too much does not hurry the others', async () => {
  const slow = provider('slow', async () => {
    const graceEndsMs = performance.now() + 40
    while (performance.now() < graceEndsMs) await immediate()
    return route('slow', 100n)
  })
  assert.equal(await chosen([offering('lying', 200n), slow], { worth: 100n }), 'slow')
})

test('a provider that is away, has no route, is late or is hostile leaves the swap to the other one', async () => {
  assert.equal(await chosen([failing('one', 'unavailable'), offering('other', 1n)]), 'other')
  assert.equal(await chosen([offering('one', 1n), failing('other', 'no_route')]), 'one')
  assert.equal(await chosen([silent, offering('other', 1n)]), 'other')
  assert.equal(await chosen([offering('one', 1n), silent]), 'one')
  assert.equal(await chosen([offering('one', 1n), offering('other', 9n)], { refused: ['other'] }), 'one')
})

test('a late provider is not waited for further, and its request ends', async () => {
  let isEnded = false
  const late = provider('late', (_request, signal) => {
    signal?.addEventListener('abort', () => {
      isEnded = true
    })
    return never
  })
  assert.equal(await chosen([offering('one', 1n), late]), 'one')
  assert.equal(isEnded, true)
})

test('without a route the fault says most about the request', async () => {
  assert.equal(await codeOf(failing('one', 'unavailable'), failing('other', 'unavailable')), 'unavailable')
  assert.equal(await codeOf(failing('one', 'unavailable'), failing('other', 'no_route')), 'unavailable')
  assert.equal(await codeOf(failing('one', 'no_route'), failing('other', 'unavailable')), 'no_route')
  assert.equal(
    await codeOf(failing('one', 'no_route'), failing('other', 'insufficient_liquidity')),
    'insufficient_liquidity',
  )
})

test('a chain is unsupported only where no provider serves it', async () => {
  const foreign = provider('foreign', async () => {
    throw invalid('chain_id_in', 'unsupported_chain', 'Swaps do not serve this chain')
  })
  assert.equal(await codeOf(foreign, foreign), 'validation')
  for (const code of ['no_route', 'unavailable', 'insufficient_liquidity'] as const) {
    assert.equal(await codeOf(foreign, failing('other', code)), code)
    assert.equal(await codeOf(failing('other', code), foreign), code)
  }
})
