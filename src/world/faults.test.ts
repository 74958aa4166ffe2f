import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faultDial, methodsOf } from './faults.ts'

test('a fault with a count hits that many matching requests and then no more', () => {
  const dial = faultDial()
  dial.set({ status: 503, methods: ['eth_call'], count: 2 })
  const hit = ['eth_call', 'eth_chainId', 'eth_call', 'eth_call'].map(
    (method) => dial.next([method]) !== undefined,
  )
  assert.deepEqual(hit, [true, false, true, false])
  assert.equal(dial.current()?.hits, 2)
})

test('a rate hits about its share, and the same seed hits the same requests', () => {
  const run = (seed: number) => {
    const dial = faultDial()
    dial.set({ refuse: true, rate: 0.25, seed })
    return Array.from({ length: 4_000 }, () => dial.next([]) !== undefined)
  }
  const share = run(7).filter(Boolean).length / 4_000
  assert.ok(share > 0.22 && share < 0.28, `share was ${share}`)
  assert.deepEqual(run(7), run(7))
  assert.notDeepEqual(run(7), run(8))
})

test('a batch meets the fault of any method in it', () => {
  const dial = faultDial()
  dial.set({ silent: true, methods: ['eth_sendRawTransaction'] })
  const batch = JSON.stringify([{ method: 'eth_chainId' }, { method: 'eth_sendRawTransaction' }])
  assert.deepEqual(methodsOf(batch), ['eth_chainId', 'eth_sendRawTransaction'])
  assert.ok(dial.next(methodsOf(batch)))
  assert.equal(dial.next(methodsOf('no json')), undefined)
})

test('a cleared dial disturbs nothing', () => {
  const dial = faultDial()
  dial.set({ latency_ms: 10 })
  assert.equal(dial.isSet(), true)
  dial.clear()
  assert.equal(dial.isSet(), false)
  assert.equal(dial.next([]), undefined)
})
