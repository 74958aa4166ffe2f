/**
 * The store refuses to start, or to run a backup or a restore. The message is for the operator and is printed without a
 * stack.
 */
export class StoreRefusal extends Error {
  override name = 'StoreRefusal'
}
