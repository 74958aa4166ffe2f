import { fromBase58, toBase58 } from './base58.ts'
import type { StoredMeta } from './execution.ts'
import { parsedInstruction } from './instruction-view.ts'
import { readJson } from './json.ts'
import type { BodyRow } from './ledger.ts'
import { isSigner, isWritable, type Message, parseTransaction, type WireTransaction } from './message.ts'
import { RpcError } from './rpc-error.ts'
import type { TransactionError } from './transaction-error.ts'

export const transactionEncodings = ['json', 'jsonParsed', 'base64', 'base58', 'binary'] as const
export type TransactionEncoding = (typeof transactionEncodings)[number]

export const statusOf = (err: TransactionError | null) => (err === null ? { Ok: null } : { Err: err })
export const errorOf = (err: string | null): TransactionError | null =>
  err === null ? null : (readJson(err) as TransactionError)

const plainMessage = (message: Message) => ({
  header: message.header,
  accountKeys: message.accountKeys,
  recentBlockhash: message.recentBlockhash,
  instructions: message.instructions.map(({ programIdIndex, accounts, data }) => ({
    programIdIndex,
    accounts,
    data: toBase58(data),
    stackHeight: 1,
  })),
  ...(message.version === 0 ? { addressTableLookups: message.addressTableLookups } : {}),
})

const parsedMessage = (message: Message, keys: string[], loadedWritable: number) => ({
  accountKeys: keys.map((pubkey, index) => ({
    pubkey,
    signer: isSigner(message, index),
    source: index < message.accountKeys.length ? 'transaction' : 'lookupTable',
    writable: isWritable(message, loadedWritable, index),
  })),
  recentBlockhash: message.recentBlockhash,
  instructions: message.instructions.map(({ programIdIndex, accounts, data }) =>
    parsedInstruction(
      { program: keys[programIdIndex] ?? '', accounts: accounts.map((at) => keys[at] ?? ''), data },
      1,
    ),
  ),
  ...(message.version === 0 ? { addressTableLookups: message.addressTableLookups } : {}),
})

const body = (
  transaction: WireTransaction,
  keys: string[],
  loadedWritable: number,
  encoding: TransactionEncoding,
) => {
  const { bytes, message, signatures } = transaction
  if (encoding === 'base64') return [Buffer.from(bytes).toString('base64'), 'base64']
  if (encoding === 'base58') return [toBase58(bytes), 'base58']
  if (encoding === 'binary') return toBase58(bytes)
  return {
    signatures,
    message: encoding === 'json' ? plainMessage(message) : parsedMessage(message, keys, loadedWritable),
  }
}

const innerOf = (inner: StoredMeta['inner'], keys: string[], encoding: TransactionEncoding) =>
  inner.map(({ index, instructions }) => ({
    index,
    instructions:
      encoding !== 'jsonParsed'
        ? instructions
        : instructions.map(({ programIdIndex, accounts, data, stackHeight }) =>
            parsedInstruction(
              {
                program: keys[programIdIndex] ?? '',
                accounts: accounts.map((at) => keys[at] ?? ''),
                data: fromBase58(data) ?? new Uint8Array(),
              },
              stackHeight,
            ),
          ),
  }))

/** A stored transaction in the form of getTransaction. */
export const transactionView = (
  row: BodyRow,
  encoding: TransactionEncoding,
  versionMax: number | undefined,
) => {
  const transaction = parseTransaction(row.wire)
  const { version } = transaction.message
  if (version !== 'legacy' && versionMax === undefined) {
    throw new RpcError(
      -32015,
      `Transaction version (${version}) is not supported by the requesting client. Please try the request again with the following configuration parameter: "maxSupportedTransactionVersion": ${version}`,
    )
  }
  const meta = readJson(row.meta) as StoredMeta
  const err = errorOf(row.err)
  const keys = [...transaction.message.accountKeys, ...meta.loaded.writable, ...meta.loaded.readonly]
  return {
    blockTime: row.time,
    meta: {
      computeUnitsConsumed: meta.units,
      err,
      fee: meta.fee,
      innerInstructions: innerOf(meta.inner, keys, encoding),
      ...(encoding === 'jsonParsed' ? {} : { loadedAddresses: meta.loaded }),
      logMessages: meta.logs,
      postBalances: meta.after.lamports,
      postTokenBalances: meta.after.tokens,
      preBalances: meta.before.lamports,
      preTokenBalances: meta.before.tokens,
      ...(meta.returnData === null ? {} : { returnData: meta.returnData }),
      rewards: [],
      status: statusOf(err),
    },
    slot: row.slot,
    transaction: body(transaction, keys, meta.loaded.writable.length, encoding),
    ...(versionMax === undefined ? {} : { version }),
  }
}
