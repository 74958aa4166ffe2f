import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { onStopSignals } from './stop-signals.ts'

const signalled = () => {
  const source = new EventEmitter()
  const seen: string[] = []
  let now = 0
  const handlers = { stop: (signal: string) => seen.push(signal), stopNow: () => seen.push('now') }
  onStopSignals(handlers, { process: source, nowMs: () => now })
  const send = (signal: string, atMs: number) => {
    now = atMs
    source.emit(signal, signal)
  }
  return { seen, send }
}

test('copies of a signal and signals that come with it are one stop', () => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) {
    const { seen, send } = signalled()
    for (const atMs of [0, 5, 900]) send(signal, atMs)
    send('SIGTERM', 950)
    assert.deepEqual(seen, [signal])
  }
})

test('a later signal ends at once', () => {
  const { seen, send } = signalled()
  send('SIGINT', 100)
  send('SIGINT', 1_101)
  assert.deepEqual(seen, ['SIGINT', 'now'])
})
