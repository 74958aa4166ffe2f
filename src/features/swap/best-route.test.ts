import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault, type FaultCode } from '#kernel/fault.ts'
import type { ProposedRoute, RouteRequest, SwapProvider } from '#kernel/swap-provider.ts'
import { bestRoute } from './best-route.ts'

const request = {} as RouteRequest
const never = new Promise<never>(() => {})
const route = (provider: string, amountOutMinUnits: bigint) =>
  ({ provider, amountOutMinUnits }) as ProposedRoute
const provider = (name: string, quote: SwapProvider['quote']): SwapProvider => ({
  name,
  quote,
  status: () => never,
})
const offering = (name: string, units: bigint) => provider(name, async () => route(name, units))
const failing = (name: string, code: FaultCode) =>
  provider(name, async () => {
    throw new Fault(code, name)
  })
const silent = provider('silent', () => never)
const chosen = async (providers: SwapProvider[], refused: string[] = []) => {
  const assertSafe = (each: ProposedRoute) => {
    if (refused.includes(each.provider)) throw new Fault('upstream_changed', each.provider)
  }
  return (await bestRoute(providers, request, assertSafe, { graceMs: 20 })).provider
}
const codeOf = async (...providers: SwapProvider[]) =>
  chosen(providers).then(
    () => assert.fail('a route was found'),
    (fault: Fault) => fault.code,
  )

test('the higher minimum wins, and the first provider where they are equal', async () => {
  assert.equal(await chosen([offering('one', 1n), offering('other', 2n)]), 'other')
  assert.equal(await chosen([offering('one', 2n), offering('other', 1n)]), 'one')
  assert.equal(await chosen([offering('one', 1n), offering('other', 1n)]), 'one')
})

test('a provider that is away, has no route, is late or is hostile leaves the swap to the other one', async () => {
  assert.equal(await chosen([failing('one', 'unavailable'), offering('other', 1n)]), 'other')
  assert.equal(await chosen([offering('one', 1n), failing('other', 'no_route')]), 'one')
  assert.equal(await chosen([silent, offering('other', 1n)]), 'other')
  assert.equal(await chosen([offering('one', 1n), silent]), 'one')
  assert.equal(await chosen([offering('one', 1n), offering('other', 9n)], ['other']), 'one')
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
