import { setTimeout as pause } from 'node:timers/promises'
import { createReadingWatcher, type ReadingWatcher } from '#kernel/async/reading-watcher.ts'
import { monotonicMs } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import { type SignatureStatus, type Solana, statusesMax } from './solana.ts'

/** `status` is undefined if the node that answered does not know the signature. */
export type SignatureReading = { slot: bigint; status: SignatureStatus | undefined }
export type SignatureWatcher = ReadingWatcher<string, SignatureReading>

type SignatureWatcherDeps = {
  chain: Pick<Solana, 'row' | 'statuses'>
  wake: (taskIds: readonly string[]) => Promise<string[]>
  log: Log
}

const pollsPerPeriodMax = 4

export function createSignatureWatcher({ chain, wake, log }: SignatureWatcherDeps): SignatureWatcher {
  const { statusPollMs } = chain.row
  let startedMs = Number.NEGATIVE_INFINITY
  return createReadingWatcher({
    pollMs: statusPollMs,
    wake,
    log,
    async beforePoll() {
      // A poll waits a little, so that steps that arrive one after another share a request, too.
      const earlyMs = statusPollMs / pollsPerPeriodMax - (monotonicMs() - startedMs)
      if (earlyMs > 0) await pause(earlyMs, undefined, { ref: false })
      startedMs = monotonicMs()
    },
    // The signatures of waiting steps come first, and then those that were read longest ago.
    choose: (waiters) =>
      [...waiters]
        .sort((a, b) => Number(b.isUrgent) - Number(a.isUrgent) || a.readMs - b.readMs)
        .slice(0, statusesMax),
    async read(asked) {
      const { slot, statuses } = await chain.statuses(asked.map(({ subject }) => subject))
      return asked.map((_, index) => ({ slot, status: statuses[index] }))
    },
  })
}
