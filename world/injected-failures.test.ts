import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failureInjector, methodsOf } from './injected-failures.ts'

test('a failure with a count applies to that many matching requests and then to none', () => {
  const injector = failureInjector()
  injector.set({ status: 503, methods: ['eth_call'], count: 2 })
  const hit = ['eth_call', 'eth_chainId', 'eth_call', 'eth_call'].map(
    (method) => injector.next([method]) !== undefined,
  )
  assert.deepEqual(hit, [true, false, true, false])
  assert.equal(injector.current()?.hits, 2)
})

test('a rate applies to about its share, and the same seed to the same requests', () => {
  const run = (seed: number) => {
    const injector = failureInjector()
    injector.set({ refuse: true, rate: 0.25, seed })
    return Array.from({ length: 4_000 }, () => injector.next([]) !== undefined)
  }
  const share = run(7).filter(Boolean).length / 4_000
  assert.ok(share > 0.22 && share < 0.28, `share was ${share}`)
  assert.deepEqual(run(7), run(7))
  assert.notDeepEqual(run(7), run(8))
})

test('a failure applies to a batch with a matching method', () => {
  const injector = failureInjector()
  injector.set({ silent: true, methods: ['eth_sendRawTransaction'] })
  const batch = JSON.stringify([{ method: 'eth_chainId' }, { method: 'eth_sendRawTransaction' }])
  assert.deepEqual(methodsOf(batch), ['eth_chainId', 'eth_sendRawTransaction'])
  assert.ok(injector.next(methodsOf(batch)))
  assert.equal(injector.next(methodsOf('no json')), undefined)
})

test('after a reset no request is affected', () => {
  const injector = failureInjector()
  injector.set({ latency_ms: 10 })
  assert.equal(injector.isSet(), true)
  injector.clear()
  assert.equal(injector.isSet(), false)
  assert.equal(injector.next([]), undefined)
})
