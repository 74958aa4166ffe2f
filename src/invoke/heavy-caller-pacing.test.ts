import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPacer, pacedLimits } from './heavy-caller-pacing.ts'
import { loadShedder } from './load-shedding.ts'
import { defaultLimits, memoryPointStore, rateLimits } from './rate-limits.ts'

const halfway = () => 0.5
const ask = ({ pauseOf }: ReturnType<typeof createPacer>, principal: string, times: number) =>
  Array.from({ length: times }, () => pauseOf(principal))

test('while the loop is busy, who asks most is paused longer and longer, and who asks rarely is not', () => {
  const pacer = createPacer(halfway)
  pacer.record(0.7)
  ask(pacer, 'rare', 2)
  assert.ok(ask(pacer, 'often', 200).every((pauseMs) => pauseMs === 0))
  const pauses: number[] = []
  for (let sample = 0; sample < 60; sample++) {
    pacer.record(1)
    pauses.push(pacer.pauseOf('often'))
  }
  assert.equal(pacer.pauseOf('rare'), 0)
  assert.ok(pauses.every((pauseMs, at) => pauseMs > 0 && pauseMs >= (pauses[at - 1] ?? 0)))
  assert.equal(pauses.at(-1), 500)
  pacer.nextWindow()
  assert.equal(pacer.pauseOf('often'), 500)
  for (let sample = 0; sample < 60; sample++) pacer.record(0)
  assert.equal(pacer.pauseOf('often'), 0)
})

test('one that is alone, and those who ask no more than their free requests, are never paused', () => {
  const pacer = createPacer(halfway)
  for (let sample = 0; sample < 60; sample++) pacer.record(1)
  assert.ok(ask(pacer, 'alone', 500).every((pauseMs) => pauseMs === 0))
  const others = Array.from({ length: 10 }, (_, number) => ask(pacer, `user ${number}`, 30))
  assert.ok(others.flat().every((pauseMs) => pauseMs === 0))
  assert.equal(pacer.pauseOf('alone'), 500)
})

test('a short overload refuses the reads of who asks most, and neither their exits nor another user', async () => {
  const { isHeavy, pauseOf } = createPacer(halfway)
  const load = loadShedder(250)
  const pacing = {
    isHeavy,
    pause: (principal: string) => (pauseOf(principal) > 0 ? Promise.resolve() : undefined),
    close() {},
  }
  const limits = pacedLimits(rateLimits(defaultLimits, memoryPointStore()), { pacing, load })
  const isRefused = async (name: 'read' | 'exit', key: string) => {
    const { fault } = await limits.consume(name, key)
    return fault?.code === 'overloaded'
  }
  for (let turn = 0; turn < 40; turn++) assert.equal(await isRefused('read', 'user:often'), false)
  for (let late = 0; late < 2; late++) load.record(900)
  assert.equal(await isRefused('read', 'user:rare'), false)
  assert.equal(await isRefused('read', 'user:often'), true)
  assert.equal(await isRefused('exit', 'user:often'), false)
})
