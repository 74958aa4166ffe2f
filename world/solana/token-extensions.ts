import { accountBytes, keyAt, u16At, u32At, u64At } from './token-layout.ts'

type Extension = { extension: string; state?: unknown }
type ReadState = (data: Uint8Array) => unknown

const noKey = '11111111111111111111111111111111'
/** An all-zero key means "none" in every optional field of an extension. */
const optionalKey = (data: Uint8Array, at: number): string | null => {
  const key = keyAt(data, at)
  return key === noKey ? null : key
}

const transferFee = (data: Uint8Array, at: number) => ({
  epoch: u64At(data, at),
  maximumFee: u64At(data, at + 8),
  transferFeeBasisPoints: u16At(data, at + 16),
})

const metadata = (data: Uint8Array) => {
  let at = 64
  const text = (): string => {
    const length = u32At(data, at)
    at += 4 + length
    return Buffer.from(data.subarray(at - length, at)).toString('utf8')
  }
  const [name, symbol, uri] = [text(), text(), text()]
  const additional: [string, string][] = []
  const count = u32At(data, at)
  at += 4
  for (let left = count; left > 0; left--) additional.push([text(), text()])
  return {
    updateAuthority: optionalKey(data, 0),
    mint: keyAt(data, 32),
    name,
    symbol,
    uri,
    additionalMetadata: additional,
  }
}

const extensionTypes: Record<number, { extension: string; state?: ReadState }> = {
  1: {
    extension: 'transferFeeConfig',
    state: (data) => ({
      transferFeeConfigAuthority: optionalKey(data, 0),
      withdrawWithheldAuthority: optionalKey(data, 32),
      withheldAmount: u64At(data, 64),
      olderTransferFee: transferFee(data, 72),
      newerTransferFee: transferFee(data, 90),
    }),
  },
  2: { extension: 'transferFeeAmount', state: (data) => ({ withheldAmount: u64At(data, 0) }) },
  3: { extension: 'mintCloseAuthority', state: (data) => ({ closeAuthority: optionalKey(data, 0) }) },
  6: {
    extension: 'defaultAccountState',
    state: (data) => ({
      accountState: data[0] === 2 ? 'frozen' : data[0] === 1 ? 'initialized' : 'uninitialized',
    }),
  },
  7: { extension: 'immutableOwner' },
  8: { extension: 'memoTransfer', state: (data) => ({ requireIncomingTransferMemos: data[0] === 1 }) },
  9: { extension: 'nonTransferable' },
  11: { extension: 'cpiGuard', state: (data) => ({ lockCpi: data[0] === 1 }) },
  12: { extension: 'permanentDelegate', state: (data) => ({ delegate: optionalKey(data, 0) }) },
  13: { extension: 'nonTransferableAccount' },
  14: {
    extension: 'transferHook',
    state: (data) => ({ authority: optionalKey(data, 0), programId: optionalKey(data, 32) }),
  },
  15: { extension: 'transferHookAccount', state: (data) => ({ transferring: data[0] === 1 }) },
  18: {
    extension: 'metadataPointer',
    state: (data) => ({ authority: optionalKey(data, 0), metadataAddress: optionalKey(data, 32) }),
  },
  19: { extension: 'tokenMetadata', state: metadata },
  26: {
    extension: 'pausableConfig',
    state: (data) => ({ authority: optionalKey(data, 0), paused: data[32] === 1 }),
  },
  27: { extension: 'pausableAccount' },
}

/** The extensions after the account type byte, in the node's jsonParsed spelling. */
export const readExtensions = (data: Uint8Array): Extension[] => {
  const found: Extension[] = []
  let at = accountBytes + 1
  while (at + 4 <= data.length) {
    const type = u16At(data, at)
    const length = u16At(data, at + 2)
    const body = data.subarray(at + 4, at + 4 + length)
    if (type === 0 || body.length < length) break
    const entry = extensionTypes[type]
    if (entry === undefined) found.push({ extension: 'unparseableExtension' })
    else
      found.push(
        entry.state
          ? { extension: entry.extension, state: entry.state(body) }
          : { extension: entry.extension },
      )
    at += 4 + length
  }
  return found
}
