import type { BlockRange, LogFilter, LogSearch } from './log-search.ts'
import { incomingTransferTopics, type TransferLog, transfersOf } from './token-calls.ts'
import type { FoundLog, Hex } from './wire.ts'

export type IncomingTransfer = TransferLog & { txHash: Hex; index: number; block: bigint }
/** `searchedTo` is the last block whose logs were read, which may lie before the requested one. */
export type IncomingTransferSearch = { transfers: IncomingTransfer[]; searchedTo: bigint }

type Search = (filter: LogFilter, blocks: BlockRange) => Promise<LogSearch>

const transferOf = (log: FoundLog): IncomingTransfer[] =>
  transfersOf([log]).map((transfer) => ({
    ...transfer,
    txHash: log.txHash,
    index: log.index,
    block: log.block,
  }))

export const createIncomingTransferSearch =
  (search: Search) =>
  async (
    token: string | readonly string[],
    owner: string,
    blocks: BlockRange,
  ): Promise<IncomingTransferSearch> => {
    const { logs, searchedTo } = await search(
      { address: token, topics: incomingTransferTopics(owner) },
      blocks,
    )
    return { transfers: logs.flatMap(transferOf), searchedTo }
  }
