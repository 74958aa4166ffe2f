import { door, Refusal } from '#world/door.ts'
import type { FaultDial } from '#world/faults.ts'
import { meetFault } from '#world/faulty.ts'
import { type Listening, listen } from '#world/listen.ts'
import type { priceAnswers } from './prices.ts'

const keysMax = 500

type Options = { wish: number; dial: FaultDial; answers: ReturnType<typeof priceAnswers> }

export const startPrices = ({ wish, dial, answers }: Options): Promise<Listening> => {
  const run = door([
    {
      method: 'GET',
      path: /^\/prices\/current\/([^/]+)$/,
      run: (_visit, [list = '']) => {
        const keys = decodeURIComponent(list).split(',')
        if (keys.length > keysMax) throw new Refusal(400, `At most ${keysMax} coins fit into one request.`)
        return answers(keys)
      },
    },
  ])
  return listen(
    (incoming, answer) => {
      meetFault(dial, incoming, answer, Buffer.alloc(0)).then(
        (verdict) => {
          if (verdict.now === 'answered') return
          if (verdict.dropReply) incoming.socket.destroy()
          else run(incoming, answer)
        },
        () => incoming.socket.destroy(),
      )
    },
    { wish },
  )
}
