import { executionAsyncResource } from 'node:async_hooks'

const held: object[] = []

/**
 * Each `process.nextTick` makes an object. If a collection during startup finds none alive, V8 forgets their
 * shape and from then on makes each on a slow path that costs five times as much. An object that stays alive
 * prevents this.
 */
export function keepTickShape(): void {
  process.nextTick(() => held.push(executionAsyncResource()))
}
