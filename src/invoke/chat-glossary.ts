/** Meanings of the fields of chats, as `byName` and `byComponent` have those of the other sections. */
export const chatFields: Record<string, string> = {
  chat_id: 'Id of the message and of its task',
  thread_id: 'Id of the thread',
  recommendation_id: 'Id of the recommendation',
  recommendations: 'What the answer proposes; each waits until it is accepted or declined',
  files: 'Files that the answer has made',
  file_id: 'Id of the file',
  content_type: 'Media type of the file',
  credits_used: 'Credits that the answer took',
  credits_remaining: 'Credits left when the answer ended',
  stop_reason: 'Why the answer ended',
  message_count: 'Questions and answers of the thread',
  last_message: 'The latest question or answer, shortened',
  answer: 'The answer as far as it was given; null before its end',
  query: 'The question',
  agent: 'Which agent answers',
  citations: 'Where the figures of the answer come from',
  v4_event: 'Kind of the step',
}

export const chatFieldsByComponent: Record<string, string> = {
  'ChatAnswer.n': 'Number of the citation',
  'ChatAnswer.pointer': 'JSON pointer into the output of the tool',
  'ChatFile.url': 'Signed address of the file',
  'ChatRecommendation.title': 'What would be done',
  'ChatRecommendation.detail': 'The operation and its input, in words',
  'ChatRecommendation.input': 'Input of the operation, as it would be started',
  'ChatStoredEvent.event': 'Name of the event',
  'ChatToolCall.arguments': 'Input of the tool',
  'ThreadSummary.title': 'The first question, shortened',
}
