import { transactionGasMax } from './chains.ts'

/** Calls of a node's JSON-RPC that change its chain, and their kind. */

/**
 * `raw` carries a signed transaction; `node` asks the node to sign one; `set` writes to the state; `rewind` removes
 * blocks or pending transactions; `mine` makes blocks or configures mining.
 */
export type Change = 'raw' | 'node' | 'set' | 'rewind' | 'mine'

export type Call = { id?: unknown; method?: unknown; params?: unknown }

const tool = /^(?:anvil|hardhat|tenderly|evm)_(\w+)$/
const rewinds =
  /^(?:reorg|rollback|revert|reset|loadState|dropTransaction|dropAllTransactions|removePoolTransactions)$/
const mines = /^(?:mine|mine_detailed|setAutomine|setIntervalMining)$/
const sets = /^(?:set|add|deal)[A-Z]/
/** They configure the node and not its state; a restarted node does not have them. */
const settings =
  /^set(?:LoggingEnabled|RpcUrl|Time|BlockTimestampInterval|NextBlockTimestamp|BlockGasLimit|MinGasPrice|ChainId)$/
/** Parses only bodies that may contain such a method; `\u` may spell one by escapes. */
const hint = /eth_send|anvil_|hardhat_|tenderly_|evm_|\\u/

export const changeKind = ({ method }: Call): Change | undefined => {
  if (typeof method !== 'string') return undefined
  if (method === 'eth_sendRawTransaction' || method === 'eth_sendRawTransactionSync') return 'raw'
  if (/^eth_send(?:Unsigned)?Transaction(?:Sync)?$/.test(method)) return 'node'
  const [, name = ''] = tool.exec(method) ?? []
  if (rewinds.test(name)) return 'rewind'
  if (mines.test(name)) return 'mine'
  return sets.test(name) && !settings.test(name) ? 'set' : undefined
}

/** The calls of a body if at least one of them changes the chain. */
export const changingCalls = (body: string): Call[] | undefined => {
  if (!hint.test(body)) return undefined
  try {
    const parsed = JSON.parse(body) as Call | Call[] | null
    const calls = (Array.isArray(parsed) ? parsed : [parsed]).map((call) => call ?? {})
    return calls.some((call) => changeKind(call) !== undefined) ? calls : undefined
  } catch {
    return undefined
  }
}

type Unsigned = { gas?: unknown; gasLimit?: unknown }

const gasLimitAdded = (call: Call): Call => {
  const [unsigned, ...others] = (Array.isArray(call.params) ? call.params : []) as (Unsigned | null)[]
  const isWithout = unsigned && (unsigned.gas ?? unsigned.gasLimit ?? null) === null
  if (changeKind(call) !== 'node' || !isWithout) return call
  return { ...call, params: [{ ...unsigned, gas: `0x${transactionGasMax.toString(16)}` }, ...others] }
}

/**
 * Real nodes estimate the gas of what they sign themselves. This one would take the limit of a block, which is more than
 * one transaction may have.
 */
export const withGasLimits = (body: string): string => {
  if (!body.includes('Transaction')) return body
  const calls = changingCalls(body)
  if (!calls?.some((call) => changeKind(call) === 'node')) return body
  const complete = calls.map(gasLimitAdded)
  return JSON.stringify(body.trimStart().startsWith('[') ? complete : complete[0])
}
