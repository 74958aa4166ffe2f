/** The store cannot start. The message is for the operator and is printed without a stack. */
export class StoreRefusal extends Error {
  override name = 'StoreRefusal'
}
