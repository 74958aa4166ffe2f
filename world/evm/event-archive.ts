import { appendFile, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Address } from './chains.ts'
import type { Rpc } from './rpc.ts'

type Hex = `0x${string}`
export type EventLog = {
  address: Hex
  topics: [Hex, ...Hex[]]
  data: Hex
  transactionHash: Hex
  blockNumber: Hex
  logIndex: Hex
}

export type EventArchive = {
  /** Events of a contract since the first block, oldest first; a null topic matches any. */
  find: (rpc: Rpc, address: Address, topics: readonly (Hex | readonly Hex[] | null)[]) => Promise<EventLog[]>
  /** Copies events that are too old to be reorganised; `savedHead` is the newest block that survives a crash. */
  extend: (rpc: Rpc, savedHead: number) => Promise<void>
  clear: () => Promise<void>
}

/** Larger than the depth of any reorganisation. */
const finalBlocks = 128
const hex = (value: number) => `0x${value.toString(16)}`

type ArchiveLine = EventLog | { through: number }

const keyOf = ({ transactionHash, logIndex }: EventLog) => `${transactionHash}:${logIndex}`

/** Stores the events of the world's own contracts, because a node drops the logs of old blocks. */
export const eventArchive = (dir: string, id: string, addresses: readonly Address[]): EventArchive => {
  const path = join(dir, `${id}.events.jsonl`)
  let through: number | undefined

  const read = async (): Promise<EventLog[]> => {
    const text = await readFile(path, 'utf8').catch(() => '')
    const found = new Map<string, EventLog>()
    let last = -1
    for (const line of text.split('\n')) {
      if (line === '') continue
      try {
        const parsed = JSON.parse(line) as ArchiveLine
        if ('through' in parsed) last = parsed.through
        else found.set(keyOf(parsed), parsed)
      } catch {
        // The incomplete last line of a killed process; its events are read from the chain again.
      }
    }
    through = last
    return [...found.values()]
  }

  return {
    find: async (rpc, address, topics) => {
      const archived = await read()
      const filter = { address, topics, fromBlock: hex((through ?? -1) + 1), toBlock: 'latest' }
      const live = (await rpc.call('eth_getLogs', [filter])) as EventLog[]
      const matches = (log: EventLog) =>
        log.address.toLowerCase() === address.toLowerCase() &&
        topics.every((topic, index) => {
          const own = log.topics[index]
          return topic === null || (typeof topic === 'string' ? topic === own : topic.includes(own as Hex))
        })
      const found = new Map([...archived.filter(matches), ...live].map((log) => [keyOf(log), log]))
      return [...found.values()]
    },
    extend: async (rpc, savedHead) => {
      if (through === undefined) await read()
      const from = (through ?? -1) + 1
      const to = savedHead - finalBlocks
      // In steps, so that an idle chain is not queried each second.
      if (to < from + finalBlocks) return
      const filter = { address: addresses, fromBlock: hex(from), toBlock: hex(to) }
      const logs = (await rpc.call('eth_getLogs', [filter])) as EventLog[]
      const lines: ArchiveLine[] = logs.map(
        ({ address, topics, data, transactionHash, blockNumber, logIndex }) => ({
          address,
          topics,
          data,
          transactionHash,
          blockNumber,
          logIndex,
        }),
      )
      lines.push({ through: to })
      await appendFile(path, `\n${lines.map((line) => JSON.stringify(line)).join('\n')}\n`, { mode: 0o600 })
      through = to
    },
    clear: async () => {
      through = undefined
      await rm(path, { force: true })
    },
  }
}
