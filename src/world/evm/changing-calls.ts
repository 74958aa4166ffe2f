/** Which calls of a node's JSON-RPC change its chain, and in what way. */

/**
 * `raw` carries a signed transaction; `node` asks the node to sign one; `set` writes into the state; `rewind` takes
 * back blocks or pending transactions; `mine` makes blocks or says when they are made.
 */
export type Change = 'raw' | 'node' | 'set' | 'rewind' | 'mine'

export type Call = { id?: unknown; method?: unknown; params?: unknown }

const tool = /^(?:anvil|hardhat|tenderly|evm)_(\w+)$/
const rewinds =
  /^(?:reorg|rollback|revert|reset|loadState|dropTransaction|dropAllTransactions|removePoolTransactions)$/
const mines = /^(?:mine|mine_detailed|setAutomine|setIntervalMining)$/
const sets = /^(?:set|add|deal)[A-Z]/
/** They set the node and not its state, and a node that starts again has forgotten them. */
const settings =
  /^set(?:LoggingEnabled|RpcUrl|Time|BlockTimestampInterval|NextBlockTimestamp|BlockGasLimit|MinGasPrice|ChainId)$/
/** Parses only bodies that may name such a method; `\u` may spell one by escapes. */
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

/** The calls of a body, when at least one of them changes the chain. */
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
