-- An archive as version 1 wrote it.
create table facts (
  name text primary key,
  value text not null
) strict;

create table messages (
  call_number text collate binary primary key not null check (length(call_number) = 8),
  message_id text,
  subject text,
  from_header text,
  date text,
  date_header text,
  from_line blob,
  raw blob not null,
  source text not null,
  number integer not null,
  byte_offset integer not null,
  content_hash blob not null check (length(content_hash) = 32),
  problem text,
  unique (source, byte_offset, content_hash)
) strict;

create index messages_by_message_id on messages (message_id) where message_id is not null;
create index messages_by_content on messages (content_hash);

pragma application_id = 1129210226;

insert into facts values ('store_id', 'store-a'), ('namespace', 'main');
insert into messages (call_number, message_id, raw, source, number, byte_offset, content_hash)
  values ('00000001', '<a@b>', x'4d6573736167652d49443a203c6140623e0a4c6973742d49643a203c782e6578616d706c653e0a546f3a204164610a0a780a', '/mail/letters.mbox', 1, 0,
    x'460a23fe716d36820d21dcd1ed95c607c09c7ecfe8c602cfd01ae7f1bf86fd18');
pragma user_version = 1;
