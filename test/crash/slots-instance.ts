/**
 * An instance that serves slots, as a process that can be killed or stopped. Each line of its input is how far its clock
 * is ahead, in milliseconds; it prints `ready`, and `on duty` when it serves the slots.
 */
import { createInterface } from 'node:readline'
import type { Clock } from '#kernel/clock.ts'
import { executed, openFixture } from '../durable/engine-fixture.ts'
import { runKindOf, slotsOf } from '../durable/strategy-fixture.ts'

const [url = '', kind, ahead] = process.argv.slice(2)
let aheadMs = Number(ahead)
const clock: Clock = { now: () => new Date(Date.now() + aheadMs) }

const fixture = await openFixture({ url, drop: async () => {} })
const { taskEngine, database } = await fixture.instance(
  { steps: { only: async () => executed } },
  { internal: kind === 'runs' ? [runKindOf()] : [], clock },
)
slotsOf({ taskEngine, database }, { clock }).start()
createInterface({ input: process.stdin }).on('line', (line) => {
  aheadMs = Number(line)
  taskEngine.announceSlots()
})
const watch = setInterval(() => {
  if (!taskEngine.isOnDuty()) return
  clearInterval(watch)
  console.log('on duty')
}, 50)
console.log('ready')
