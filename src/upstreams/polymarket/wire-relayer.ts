import * as T from '#kernel/contract/schema.ts'

/** The replies of the relayer. https://docs.polymarket.com/trading/gasless */

const text = T.String()
const maybe = <S extends T.TSchema>(schema: S) => T.Optional(T.Union([schema, T.Null()]))

/** https://docs.polymarket.com/api-reference/relayer/get-transaction-parameters */
export const RelayParams = T.Object({ nonce: text })
/** The hash is not known yet. https://docs.polymarket.com/api-reference/relayer/submit-a-transaction */
export const RelaySubmitted = T.Object({ transactionID: text, state: text })
/** https://docs.polymarket.com/api-reference/relayer/get-a-transaction */
export const RelayTransaction = T.Object({
  transaction_id: text,
  state: text,
  transaction_hash: maybe(text),
  error_msg: maybe(text),
  type: maybe(text),
  nonce: maybe(text),
  signature: maybe(text),
  metadata: maybe(text),
})
/** The older list, which names its fields otherwise. */
export const RelayTransactions = T.Array(
  T.Object({
    transactionID: text,
    state: text,
    transactionHash: maybe(text),
    from: maybe(text),
    type: maybe(text),
    nonce: maybe(text),
    signature: maybe(text),
    metadata: maybe(text),
    errorMsg: maybe(text),
  }),
)
/** https://docs.polymarket.com/api-reference/relayer/check-if-a-wallet-is-deployed */
export const Deployed = T.Object({ deployed: T.Boolean() })
