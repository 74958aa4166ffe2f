import type { Portico } from '#sdk/client.ts'
import type { ChatEvent, ChatScreen } from './chat-screen.ts'
import type { Terminal } from './terminal.ts'

export type ChatInput = Parameters<Portico['chat']['stream']>[0]

/** How long a person who interrupts an answer waits at most for a gateway that does not stop it. */
const stopMs = 5_000

type Deps = {
  terminal: Terminal
  client: Portico
  screen: ChatScreen
  print: (event: ChatEvent) => void
  /** Ends the answer; by default the signal of the terminal does. */
  signal?: AbortSignal
}

/** Asks, and prints the events of the answer as they arrive. */
export async function answerTo(
  input: ChatInput,
  { terminal, client, screen, print, signal = terminal.signal }: Deps,
): Promise<{ chatId: string; threadId: string }> {
  let [chatId, threadId] = ['', '']
  try {
    const follow = {
      signal,
      onLost: () => screen.note('the connection was lost; the answer goes on when it is back'),
    }
    for await (const event of client.chat.stream(input, follow)) {
      if (event.event === 'meta') {
        chatId = event.data.chat_id
        threadId = event.data.thread_id
      }
      print(event)
    }
    return { chatId, threadId }
  } catch (error) {
    screen.endProgress()
    const isEnded = screen.endLine()
    // Ctrl-C makes the terminal print ^C; unless `endLine` has just ended that line, a line break is still missing.
    if (signal.aborted && terminal.isInteractive && !isEnded) terminal.err('\n')
    // A person who leaves stops the answer, so that the answer costs no more credits.
    if (signal.aborted && chatId !== '') await stop(client, chatId, screen)
    throw error
  }
}

async function stop(client: Portico, chatId: string, screen: ChatScreen): Promise<void> {
  const isStopped = await client.chat
    .cancel({ chat_id: chatId }, { signal: AbortSignal.timeout(stopMs) })
    .then(
      () => true,
      () => false,
    )
  screen.note(
    isStopped ? 'the answer was stopped' : 'you have left; the answer ends by itself without a listener',
  )
}
