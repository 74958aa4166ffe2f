import { readFileSync } from 'node:fs'

/** Read from /proc. */
export const isProcessorTimeKnown = process.platform === 'linux'

/** Processor time of the answering thread of a gateway, in milliseconds; the load of the machine does not change it. */
export function threadCpuMs({ pid }: { pid: number }): number {
  const [nanoseconds] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')
  return Number(nanoseconds) / 1e6
}
