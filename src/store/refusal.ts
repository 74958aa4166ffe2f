/** The store cannot start; the message is one sentence for the operator and needs no stack beside it. */
export class StoreRefusal extends Error {
  override name = 'StoreRefusal'
}
