import { Worker } from 'node:worker_threads'
import { createFairQueue } from '#kernel/async/fair-queue.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { BacktestJob, BacktestMessage, BacktestOutcome } from './backtest-message.ts'

/**
 * Runs backtests in threads of their own, so that no operation waits for their processor time: two at once, and those of
 * one user behind those of others.
 */

const threadUrl = new URL('./backtest-thread.ts', import.meta.url)
const runsMax = 2
const waitingMax = 32
const waitingOfUserMax = 4
/** The memory of a thread without its pictures: a month of minutes takes less than half of it. */
const heapMbMax = 96
const durationMsMax = 60_000

export type Backtests = {
  run(userId: string, job: BacktestJob, signal?: AbortSignal): Promise<BacktestOutcome>
}

export function createBacktests(): Backtests {
  const queue = createFairQueue({ runsMax, waitingMax, waitingOfKeyMax: waitingOfUserMax })
  return {
    run: (userId, job, signal) => queue.run(userId, () => runInThread(job, signal), signal),
  }
}

async function runInThread(job: BacktestJob, signal: AbortSignal | undefined): Promise<BacktestOutcome> {
  const limit = AbortSignal.timeout(durationMsMax)
  const ended = signal ? AbortSignal.any([signal, limit]) : limit
  const worker = new Worker(threadUrl, {
    workerData: job,
    resourceLimits: { maxOldGenerationSizeMb: heapMbMax },
  })
  const { promise, resolve, reject } = Promise.withResolvers<BacktestMessage>()
  const abandon = () => reject(limit.aborted ? tooLong() : ended.reason)
  ended.addEventListener('abort', abandon, { once: true })
  worker.once('message', resolve)
  worker.once('error', (error) => reject(isOutOfMemory(error) ? tooLarge() : error))
  worker.once('exit', (code) => reject(new Error(`the thread of a backtest ended with ${code}`)))
  try {
    const message = await promise
    if ('error' in message) throw new Error(message.error)
    return message.outcome
  } finally {
    ended.removeEventListener('abort', abandon)
    await worker.terminate()
  }
}

const isOutOfMemory = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
const tooLarge = () =>
  new Fault('conflict', 'The backtest needs more memory than one may have: shorten its time')
const tooLong = () => new Fault('conflict', 'The backtest takes longer than a minute: shorten its time')
