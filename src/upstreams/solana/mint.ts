import { Fault } from '#kernel/contract/fault.ts'
import { isRecord } from '#kernel/wire/json.ts'
import type { RpcAnswer, RpcCall } from '#kernel/wire/json-rpc.ts'
import { hasKey } from './program-address.ts'
import { tokenPrograms } from './program-ids.ts'
import { integerOf, parseContext, resultOf, valueAt } from './wire.ts'

/** What a mint allows those who control it, as the node parses it. */

export type MintExtensions = {
  transferFee: { bps: number; authority: string | null } | null
  permanentDelegate: string | null
  /** The program that every transfer calls, or the authority that may set one. */
  transferHook: string | null
  isNonTransferable: boolean
  isFrozenByDefault: boolean
  /** The authority that may stop all transfers. */
  pausable: string | null
  /** The names of extensions that this version does not know. */
  unknown: string[]
}
export type MintFacts = {
  slot: bigint
  supplyUnits: bigint
  mintAuthority: string | null
  freezeAuthority: string | null
  extensions: MintExtensions
  /** The largest holdings controlled by a person's key, in descending order; null if they are unknown. */
  largestUnits: bigint[] | null
}
export type InspectedMint =
  | { type: 'mint'; facts: MintFacts }
  /** There is no account at the address, or the account is no mint. */
  | { type: 'absent'; slot: bigint }

type CallAll = (calls: readonly RpcCall[], signal?: AbortSignal) => Promise<RpcAnswer[]>

const confirmed = { commitment: 'confirmed' }
const parsed = { encoding: 'jsonParsed', ...confirmed }
const holdersMax = 20
const extensionsMax = 64

const broken = (what: string) => new Fault('unavailable', `The Solana node answered with ${what}`)

export async function inspectMint(rpc: CallAll, mint: string, signal?: AbortSignal): Promise<InspectedMint> {
  const [account, largest] = await rpc(
    [
      { method: 'getAccountInfo', params: [mint, parsed] },
      { method: 'getTokenLargestAccounts', params: [mint, confirmed] },
    ],
    signal,
  )
  const { slot, value } = parseContext(resultOf(account!))
  const info = valueAt(value, ['data', 'parsed', 'info'])
  const isMint = valueAt(value, ['data', 'parsed', 'type']) === 'mint'
  const isToken = tokenPrograms.some((program) => program === valueAt(value, ['owner']))
  if (value === null || !isToken) return { type: 'absent', slot }
  // A mint with an extension that the node does not know arrives as bytes.
  if (!isRecord(info)) throw broken('a mint that it cannot read')
  if (!isMint) return { type: 'absent', slot }
  const supplyUnits = integerOf(info.supply)
  if (supplyUnits === undefined) throw broken('a mint without a supply')
  return {
    type: 'mint',
    facts: {
      slot,
      supplyUnits,
      mintAuthority: authorityOf(info, 'mintAuthority'),
      freezeAuthority: authorityOf(info, 'freezeAuthority'),
      extensions: extensionsOf(info.extensions),
      largestUnits: await largestUnits(rpc, largest!, signal),
    },
  }
}

/** Returns an authority, or null if the mint has none. An absent field does not mean none, so it throws. */
function authorityOf(record: Record<string, unknown>, name: string): string | null {
  const value = record[name]
  if (value === null || (typeof value === 'string' && value !== '')) return value
  throw broken(`a mint without \`${name}\``)
}

const harmless = new Set([
  'metadataPointer',
  'tokenMetadata',
  'groupPointer',
  'groupMemberPointer',
  'tokenGroup',
  'tokenGroupMember',
  'interestBearingConfig',
  'scaledUiAmountConfig',
  'confidentialTransferMint',
  'confidentialTransferFeeConfig',
  'confidentialMintBurn',
  'mintCloseAuthority',
])

function extensionsOf(value: unknown): MintExtensions {
  const found: MintExtensions = {
    transferFee: null,
    permanentDelegate: null,
    transferHook: null,
    isNonTransferable: false,
    isFrozenByDefault: false,
    pausable: null,
    unknown: [],
  }
  if (value === undefined) return found
  if (!Array.isArray(value) || value.length > extensionsMax) throw broken('a malformed list of extensions')
  for (const each of value) addExtension(found, each)
  return found
}

function addExtension(found: MintExtensions, value: unknown): void {
  if (!isRecord(value) || typeof value.extension !== 'string') throw broken('a malformed extension')
  const { extension: name } = value
  const state = isRecord(value.state) ? value.state : {}
  switch (name) {
    case 'transferFeeConfig':
      found.transferFee = transferFeeOf(state)
      break
    case 'permanentDelegate':
      found.permanentDelegate = authorityOf(state, 'delegate')
      break
    case 'transferHook':
      found.transferHook = authorityOf(state, 'programId') ?? authorityOf(state, 'authority')
      break
    case 'nonTransferable':
      found.isNonTransferable = true
      break
    case 'defaultAccountState':
      found.isFrozenByDefault = state.accountState !== 'initialized'
      break
    case 'pausableConfig':
      // A paused mint stays paused if nobody may resume it.
      found.pausable = authorityOf(state, 'authority') ?? (state.paused === false ? null : 'nobody')
      break
    default:
      if (!harmless.has(name)) found.unknown.push(name.slice(0, 64))
  }
}

/** A change of the fee takes effect two epochs later, so the higher of the old and the new rate counts. */
function transferFeeOf(state: Record<string, unknown>): MintExtensions['transferFee'] {
  const bps = ['olderTransferFee', 'newerTransferFee'].map((name) => {
    const points = integerOf(valueAt(state, [name, 'transferFeeBasisPoints']))
    if (points === undefined) throw broken('a transfer fee without a rate')
    return Number(points)
  })
  return { bps: Math.max(...bps), authority: authorityOf(state, 'transferFeeConfigAuthority') }
}

/**
 * Returns the largest holdings, without those of pools and locks, which addresses without a key hold for
 * programs. Returns null if the node gives no list; some refuse it for mints with many accounts.
 */
async function largestUnits(
  rpc: CallAll,
  largest: RpcAnswer,
  signal: AbortSignal | undefined,
): Promise<bigint[] | null> {
  if ('error' in largest) return null
  const { value } = parseContext(largest.result)
  if (!Array.isArray(value)) return null
  const held = value.slice(0, holdersMax).flatMap((each: unknown) => {
    const units = integerOf(valueAt(each, ['amount']))
    const address = valueAt(each, ['address'])
    return units === undefined || typeof address !== 'string' ? [] : [{ address, units }]
  })
  if (held.length < Math.min(value.length, holdersMax)) return null
  if (held.length === 0) return []
  const addresses = held.map(({ address }) => address)
  const [accounts] = await rpc([{ method: 'getMultipleAccounts', params: [addresses, parsed] }], signal)
  if (!accounts || 'error' in accounts) return null
  const { value: infos } = parseContext(accounts.result)
  if (!Array.isArray(infos) || infos.length !== held.length) return null
  const byOwner = new Map<string, bigint>()
  for (const [index, { units }] of held.entries()) {
    const owner = valueAt(infos[index], ['data', 'parsed', 'info', 'owner'])
    if (typeof owner !== 'string') return null
    if (hasKey(owner)) byOwner.set(owner, (byOwner.get(owner) ?? 0n) + units)
  }
  return [...byOwner.values()].sort((a, b) => (a < b ? 1 : a > b ? -1 : 0))
}
