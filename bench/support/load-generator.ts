/**
 * The load generator: one request in flight on each connection, over plain sockets. A full HTTP client would cost more
 * than the fastest server under test, and so measure itself.
 */
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { LoadResult, LoadSpec } from './environment.ts'
import { median, percentile } from './measure.ts'

type Tally = { us: number[]; wrong: number }

const headEnd = '\r\n\r\n'

function requestOf(url: URL, token: string | undefined): Buffer {
  const authorization = token === undefined ? '' : `authorization: Bearer ${token}\r\n`
  return Buffer.from(
    `GET ${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\naccept: application/json\r\n${authorization}\r\n`,
  )
}

const open = (url: URL) =>
  new Promise<Socket>((resolve, reject) => {
    const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true })
    socket.once('connect', () => resolve(socket))
    socket.once('error', reject)
  })

/** Resolves when the socket has sent its last request. */
function repeatRequest(socket: Socket, request: Buffer, untilMs: number, everyMs: number, tally: Tally) {
  return new Promise<void>((resolve, reject) => {
    let sentMs = 0
    let dueMs = performance.now() + Math.random() * everyMs
    let text = ''
    const send = () => {
      sentMs = performance.now()
      socket.write(request)
    }
    const next = () => {
      const nowMs = performance.now()
      if (nowMs >= untilMs) {
        socket.destroy()
        return resolve()
      }
      if (everyMs === 0) return send()
      dueMs = Math.max(dueMs + everyMs, nowMs - everyMs)
      if (dueMs <= nowMs) return send()
      void delay(dueMs - nowMs).then(send)
    }
    socket.on('data', (chunk: Buffer) => {
      text = text === '' ? chunk.toString('latin1') : text + chunk.toString('latin1')
      const head = text.indexOf(headEnd)
      if (head < 0) return
      const named = /\r\ncontent-length: (\d+)/i.exec(text)
      if (!named) return reject(new Error(`an answer without a length: ${text.slice(0, head)}`))
      if (text.length < head + headEnd.length + Number(named[1])) return
      tally.us.push((performance.now() - sentMs) * 1_000)
      if (!text.startsWith('HTTP/1.1 200')) tally.wrong += 1
      text = ''
      next()
    })
    socket.once('error', reject)
    socket.once('end', () => reject(new Error('the server closed a connection')))
    next()
  })
}

async function runLoad({ url: text, width, forMs, tokens = [], perSecond }: LoadSpec): Promise<LoadResult> {
  const url = new URL(text)
  const sockets = await Promise.all(Array.from({ length: width }, () => open(url)))
  const tally: Tally = { us: [], wrong: 0 }
  const startedMs = performance.now()
  const everyMs = perSecond === undefined ? 0 : (1_000 * width) / perSecond
  await Promise.all(
    sockets.map((socket, at) =>
      repeatRequest(socket, requestOf(url, tokens[at % tokens.length]), startedMs + forMs, everyMs, tally),
    ),
  )
  const { us, wrong } = tally
  const seconds = (performance.now() - startedMs) / 1_000
  return {
    count: us.length,
    perSecond: us.length / seconds,
    p50Us: median(us),
    p99Us: percentile(us, 0.99),
    wrong,
  }
}

process.on('message', (spec: LoadSpec) => void runLoad(spec).then((hits) => process.send?.(hits)))
