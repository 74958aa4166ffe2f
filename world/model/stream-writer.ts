import type { ServerResponse } from 'node:http'
import type { Encoder, Frame } from './encoder.ts'
import type { Action, Wire } from './plan.ts'

/** Writes the events of one answer, at its pace and with its faults. */

const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
}

const textOf = ({ event, data }: Frame, { lineEnd, hasComments }: Wire): string => {
  const comment = hasComments ? `: a comment${lineEnd}${lineEnd}` : ''
  const name = event === undefined ? '' : `event: ${event}${lineEnd}`
  return `${comment}${name}data: ${data}${lineEnd}${lineEnd}`
}

/** Ends early where the client leaves. */
export const waitFor = (answer: ServerResponse, ms: number): Promise<void> =>
  new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      answer.off('close', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    answer.once('close', end)
    if (answer.destroyed) end()
  })

const drained = (answer: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const end = () => {
      answer.off('drain', end)
      answer.off('close', end)
      resolve()
    }
    answer.once('drain', end)
    answer.once('close', end)
    if (answer.destroyed || !answer.writableNeedDrain) end()
  })

/** One write after another in separate packets, so that a client sees the borders. */
const writeSplit = async (answer: ServerResponse, bytes: Buffer, splitBytes: number) => {
  for (let at = 0; at < bytes.length && !answer.destroyed; at += splitBytes) {
    answer.write(bytes.subarray(at, at + splitBytes))
    await new Promise((resolve) => setImmediate(resolve))
    if (answer.writableNeedDrain) await drained(answer)
  }
}

type Options = { answer: ServerResponse; encoder: Encoder; actions: readonly Action[]; wire: Wire }

export const writeStream = async ({ answer, encoder, actions, wire }: Options): Promise<void> => {
  answer.writeHead(200, headers)
  answer.flushHeaders()
  answer.socket?.setNoDelay(true)
  const writeText = async (text: string) => {
    if (answer.destroyed || text === '') return
    if (wire.splitBytes !== undefined) return writeSplit(answer, Buffer.from(text), wire.splitBytes)
    if (!answer.write(text)) await drained(answer)
  }
  const write = (frames: readonly Frame[]) => writeText(frames.map((frame) => textOf(frame, wire)).join(''))

  let hasBegun = false
  const begin = async () => {
    if (hasBegun) return
    hasBegun = true
    await write(encoder.begin())
  }
  for (const action of actions) {
    if (answer.destroyed) return
    if (action.type === 'pause') {
      await waitFor(answer, action.ms)
      continue
    }
    if (action.type === 'reset') {
      // The bytes so far leave first: a reset discards what the socket still holds.
      await waitFor(answer, 10)
      answer.socket?.resetAndDestroy()
      return
    }
    await begin()
    if (action.type === 'close') {
      answer.end()
      return
    }
    if (action.type === 'raw') await writeText(action.text)
    else await write(encoder.encode(action))
    if (action.type === 'error') {
      answer.end()
      return
    }
  }
  await begin()
  await write(encoder.end())
  answer.end()
}
