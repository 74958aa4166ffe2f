import type { Files } from '#engines/files/files.ts'
import { acceptWithAppCredits } from '#features/chat/app-credits.ts'
import { type AdmittedChat, createRunKind, type RunDeps } from '#features/schedules/run.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { type Operation, streamTaskOf } from '#kernel/contract/operation.ts'
import type { TaskKind } from '#kernel/task/task.ts'
import type { Parts } from './section-parts.ts'

type RunParts = Pick<Parts, 'core' | 'scheduleClock' | 'custody'> & {
  files: Files
  operations: () => readonly Operation[]
  slots: Pick<RunDeps, 'disarm' | 'computeFollowing'>
  runner: RunDeps['runner']
}

const chatKind = 'chat'
const isChat = (operation: Operation): operation is Extract<Operation, { entry: { kind: 'stream' } }> =>
  operation.entry.kind === 'stream' && operation.entry.taskKind === chatKind

/** Returns the kind of task for runs of schedules; a run starts its chat by the operation that callers use. */
export function createScheduleRuns({ core, scheduleClock, custody, ...parts }: RunParts): TaskKind {
  const { db, taskEngine } = core
  const { files, operations, slots, runner } = parts
  const admitChat = async (input: Record<string, unknown>, caller: Caller): Promise<AdmittedChat> => {
    const chat = operations().find(isChat)
    if (!chat) throw new Error('no chat is served')
    const admission = await streamTaskOf(chat).admit(input, caller)
    const { chat_id: chatId, thread_id: threadId } = admission.data
    return { chatId: String(chatId), threadId: String(threadId), admission }
  }
  return createRunKind({
    db,
    clock: scheduleClock,
    files,
    isPaused: async (userId) => (await custody.policy.summary(userId)).paused,
    isOnHold() {
      const { holds } = taskEngine
      if (holds.waitsForOperator()) return true
      holds.assertFree()
      return false
    },
    admitChat,
    async enqueueChat(tx, { id, user_id: userId, query, agent }, { admission }) {
      const kind = taskEngine.kindOf(chatKind)
      if (!kind) throw new Error('this instance has no chats')
      return acceptWithAppCredits(tx, admission, () =>
        taskEngine.enqueue(tx, { userId, kind, input: { query, agent }, admission, parentId: id }),
      )
    },
    announceQueued: taskEngine.announceQueued,
    cancelNotSent: taskEngine.tasks.cancelNotSent,
    runner,
    ...slots,
  })
}
