import type { BatchTaskData } from '#engines/evm-batch/batch-plan.ts'
import type { Delivered, SwapLegData } from '#features/perp/swap-leg.ts'
import type { TaskProgress } from '#kernel/task/task.ts'
import type { RelayTaskData } from './relay-action.ts'

/** The data of a task that moves money to the funded wallet, which is `wallet`. */
export type FundTaskData = BatchTaskData &
  SwapLegData &
  RelayTaskData & {
    account: string
    /** The token that is wrapped, and how much of it; before a swap has delivered, its least output. */
    token: string
    symbol: string
    units: string
    swapped?: Delivered
    /** Whether dollars in the funded wallet itself are reserved. */
    is_reserved?: boolean
    progress?: TaskProgress | null
  }
