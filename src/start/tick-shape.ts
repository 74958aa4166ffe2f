import { executionAsyncResource } from 'node:async_hooks'

/** Holds one so that the garbage collector keeps its shape. */
const held: object[] = []

/**
 * Each `process.nextTick` makes an object. Where a collection during the start finds none alive, V8 forgets their shape,
 * and from then on makes each of them on its slow path, which costs five times as much: one that stays alive prevents it.
 */
export function keepTickShape(): void {
  process.nextTick(() => held.push(executionAsyncResource()))
}
