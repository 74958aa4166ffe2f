import type { Account } from './account.ts'
import { accountView, readViewOptions, type ViewOptions } from './account-view.ts'
import { fromBase58 } from './base58.ts'
import type { Chain, View } from './chain.ts'
import { withContext } from './methods-cluster.ts'
import {
  addressAt,
  addressOf,
  type Config,
  commitmentOf,
  configAt,
  countOf,
  flagOf,
  listAt,
  type Params,
  recordOf,
} from './params.ts'
import { invalidParams, RpcError } from './rpc-error.ts'
import { tokenKind } from './token-layout.ts'

const accountsMax = 100
const filtersMax = 4
const programAccountsMax = 10_000
const comparedBytesMax = 128

const memcmp = (value: unknown): ((account: Account) => boolean) => {
  const { offset, bytes, encoding } = recordOf(value)
  const at = countOf(offset, 'offset', Number.MAX_SAFE_INTEGER)
  if (typeof bytes !== 'string') throw invalidParams('memcmp bytes must be text')
  const wanted = encoding === 'base64' ? Buffer.from(bytes, 'base64') : fromBase58(bytes.slice(0, 256))
  if (wanted === undefined) throw invalidParams('Invalid param: memcmp bytes are not base58')
  if (wanted.length > comparedBytesMax)
    throw invalidParams('encoded binary (base 58) data should be less than 128 bytes')
  return ({ data }) => Buffer.compare(data.subarray(at, at + wanted.length), wanted) === 0
}

const filterOf = (value: unknown): ((account: Account) => boolean) => {
  if (value === 'tokenAccountState') return (account) => tokenKind(account) === 'account'
  const { dataSize, memcmp: comparison, tokenAccountState } = recordOf(value)
  if (dataSize !== undefined) {
    const size = countOf(dataSize, 'dataSize', Number.MAX_SAFE_INTEGER)
    return ({ data }) => data.length === size
  }
  if (comparison !== undefined) return memcmp(comparison)
  if (tokenAccountState !== undefined) return (account) => tokenKind(account) === 'account'
  throw invalidParams('unknown filter, expected dataSize, memcmp or tokenAccountState')
}

/** The filters of a call as one predicate. */
export const accountFilter = (config: Config): ((account: Account) => boolean) => {
  const filters = config.filters === undefined || config.filters === null ? [] : config.filters
  if (!Array.isArray(filters) || filters.length > filtersMax)
    throw invalidParams(`Too many filters provided; max ${filtersMax}`)
  const tests = filters.map(filterOf)
  return (account) => tests.every((test) => test(account))
}

export const keyedAccounts = (view: View, addresses: string[], viewOptions: ViewOptions) =>
  addresses.flatMap((pubkey) => {
    const account = view.account(pubkey)
    return account === undefined ? [] : [{ account: accountView(account, viewOptions, view.account), pubkey }]
  })

/** Methods that read accounts at a commitment: newer changes are not visible. */
export const accountMethods = (chain: Chain) => {
  const viewAt = (config: Config) => chain.view(commitmentOf(config))
  const viewAccount = (view: View, address: string, viewOptions: ViewOptions) => {
    const account = view.account(address)
    return account === undefined ? null : accountView(account, viewOptions, view.account)
  }
  return {
    getBalance: (params: Params) => {
      const view = viewAt(configAt(params, 1))
      return withContext(view.slot, view.account(addressAt(params, 0))?.lamports ?? 0n)
    },
    getAccountInfo: (params: Params) => {
      const config = configAt(params, 1)
      const view = viewAt(config)
      return withContext(view.slot, viewAccount(view, addressAt(params, 0), readViewOptions(config)))
    },
    getMultipleAccounts: (params: Params) => {
      const config = configAt(params, 1)
      const view = viewAt(config)
      const viewOptions = readViewOptions(config, 'base64')
      const addresses = listAt(params, 0, accountsMax).map(addressOf)
      return withContext(
        view.slot,
        addresses.map((address) => viewAccount(view, address, viewOptions)),
      )
    },
    getProgramAccounts: (params: Params) => {
      const program = addressAt(params, 0)
      const config = configAt(params, 1)
      const view = viewAt(config)
      const matches = accountFilter(config)
      const found = view.ofProgram(program).filter(([, account]) => matches(account))
      if (found.length > programAccountsMax) {
        throw new RpcError(
          -32012,
          `scan aborted: more than ${programAccountsMax} accounts match; add filters`,
        )
      }
      const viewOptions = readViewOptions(config)
      const views = found
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([pubkey, account]) => ({ account: accountView(account, viewOptions, view.account), pubkey }))
      return flagOf(config, 'withContext') ? withContext(view.slot, views) : views
    },
  }
}
